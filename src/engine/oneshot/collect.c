/* What comes after a program ended: what it used, what was refused, which files it made.
 *
 * Whether there are any files is seen without a question: the time stamp of the workspace directory
 * tells whether a name was made, removed or renamed in it since the sandbox was ready (init set it
 * a second back, and the empty program file was there already). Only then, or when the program was
 * given files, is the workspace looked into. */

#include "engine/oneshot/collect.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "engine/core/engine.h"
#include "engine/oneshot/internal.h"
#include "loop/copy.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static bool may_have_files(const struct run *r) {
    const struct sandbox *s = r->sandbox;
    return r->req.ninputs > 0 || sandbox_is_touched(s);
}

/* For init's next answer. */
static void set_deadline(struct run *r) {
    loop_timer_in_ms(r->engine->loop, &r->timer, r->engine->config.queue_ms);
}

static void run_on_changes(void *arg, struct file_answer *a);

static void ask_changes(struct run *r) {
    struct wire_out o;
    if (r->end == END_DONE || r->end == END_EXIT) { /* whoever is left must not go on writing */
        wire_begin(&o, WIRE_I_KILL);
        sandbox_ask(r->sandbox, ASKED_KILL, &o);
    }
    r->ask = (struct file_ask){.fn = run_on_changes, .arg = r};
    outcome_ask_files(r->sandbox, 0, &r->ask);
    set_deadline(r);
}

static uint64_t wall_us(const struct run *r) {
    const struct outcome *o = &r->outcome;
    return ((o->ended_ns ? o->ended_ns : now_ns()) - o->started_ns) / 1000u;
}

static uint64_t cpu_us(const struct run *r) {
    uint64_t percent = r->req.limits.cpus_percent ? r->req.limits.cpus_percent : 100;
    if (r->is_measured || !r->outcome.started_ns)
        return r->outcome.cpu_us;
    uint64_t group_us = r->sandbox ? cgroup_fds_cpu_us(r->sandbox->cgroup) : 0;
    return group_us ? group_us + r->heard_ns / 1000u : wall_us(r) * percent / 100;
}

static bool is_cut(const struct run *r) {
    return output_truncated(&r->out[0]) || output_truncated(&r->out[1]);
}

/* What we ended it for, or the control group did, comes before what it met and survived. */
static void find_limit(struct run *r, const struct cgroup_usage *u) {
    struct outcome *o = &r->outcome;
    if (r->end == END_TIMEOUT)
        outcome_met(o, LIMIT_TIME);
    if (r->end == END_MEMORY || u->out_of_memory)
        outcome_met(o, LIMIT_MEMORY);
    if (r->end == END_CPU)
        outcome_met(o, LIMIT_CPU);
    outcome_met(o, r->met);
    outcome_met_in(o, u, r->sandbox);
    if (is_cut(r) || r->shown.cut)
        outcome_met(o, LIMIT_OUTPUT);
}

void run_measure(struct run *r) {
    struct outcome *o = &r->outcome;
    struct cgroup_usage u = {0};
    if (cgroup_fds_there(r->sandbox->cgroup)) {
        u = cgroup_fds_usage(r->sandbox->cgroup);
        o->cpu_us = u.cpu_us;
        o->memory_peak = u.memory_peak;
        r->out_of_memory = u.out_of_memory;
        r->is_measured = true;
    }
    uint64_t said_us = r->said_cpu_us < wall_us(r) ? r->said_cpu_us : wall_us(r);
    if (o->cpu_us < said_us)
        o->cpu_us = said_us;
    o->cpu_us += r->heard_ns / 1000u;
    denials_add_network(&o->denied, sandbox_no_route(r->sandbox));
    find_limit(r, &u);
}

static bool killed_for_memory(const struct run *r) {
    return r->end == END_MEMORY ||
           (r->out_of_memory && r->end == END_EXIT && r->outcome.signal == SIGKILL);
}

static enum outcome_status status_of(const struct run *r) {
    if (r->end == END_TIMEOUT)
        return OUTCOME_TIMEOUT;
    if (killed_for_memory(r))
        return OUTCOME_MEMORY;
    if (r->end != END_DONE)
        return OUTCOME_KILLED;
    if (r->how == DONE_INTERRUPTED)
        return OUTCOME_INTERRUPTED;
    return r->outcome.exit_code == 0 ? OUTCOME_OK : OUTCOME_ERROR;
}

void run_settle(struct run *r) {
    struct outcome *o = &r->outcome;
    o->cpu_us = cpu_us(r);
    o->status = status_of(r);
    r->is_measured = true;
    for (int i = 0; i < 2; i++) {
        o->output_bytes += r->out[i].total;
        o->cut[i] = output_truncated(&r->out[i]);
        o->crowded |= output_starved(&r->out[i]);
    }
}

void run_ask_usage(struct run *r) {
    struct wire_out o;
    if (cgroup_fds_there(r->sandbox->cgroup))
        return;
    wire_begin(&o, WIRE_I_USAGE);
    sandbox_ask(r->sandbox, ASKED_USAGE, &o);
}

static void finish_if_through(struct run *r) {
    if (r->sandbox->nasked == 0 && !files_is_asked(&r->ask) && !r->comparing && !r->keeping)
        run_finish(r);
}

static void run_on_traffic(void *arg, struct wire_in *in) {
    static const struct network_used none;
    struct run *r = arg;
    if (!in)
        return; /* it ends, and the run with it */
    outcome_take_network(&r->outcome, r->sandbox, in, &none);
    if (r->state == RUN_COLLECTING)
        finish_if_through(r);
}

void run_collect(struct run *r) {
    run_move(r, RUN_COLLECTING);
    loop_timer_stop(r->engine->loop, &r->timer);
    run_measure(r);
    run_ask_usage(r);
    if (network_ask_used(r->sandbox, run_on_traffic, r))
        set_deadline(r);
    if (may_have_files(r))
        ask_changes(r);
    if (r->sandbox->nasked == 0)
        run_finish(r);
    else
        set_deadline(r);
}

/* Of two for the same path the later one is there. */
static const struct input_file *find_input(const struct run *r, const char *path) {
    for (unsigned i = r->req.ninputs; i-- > 0;) {
        if (strcmp(r->req.inputs[i].path, path) == 0)
            return &r->req.inputs[i];
    }
    return NULL;
}

/* By name; a file of the same size as an input's is compared with it when it has been opened. */
static bool counts(const struct change *c) {
    const char *base = strrchr(c->path, '/');
    return strcmp(base ? base + 1 : c->path, "__main__.py") != 0;
}

static void run_on_file(void *arg, struct file_answer *a);

static void ask_next_file(struct run *r) {
    for (; r->collected < r->outcome.files.n; r->collected++) {
        const struct change *c = &r->outcome.files.items[r->collected];
        bool look = r->req.flags & RUN_FILES || find_input(r, c->path);
        if (!r->outcome.counts[r->collected] || !look)
            continue;
        r->ask = (struct file_ask){.fn = run_on_file, .arg = r};
        files_ask(r->sandbox, &(struct file_question){.op = FILE_READ, .path = c->path}, &r->ask);
        set_deadline(r);
        return;
    }
}

/* The one before `collected` is a change. */
static void hand_out(struct run *r, int *fd) {
    const struct change *c = &r->outcome.files.items[r->collected - 1];
    if (r->req.flags & RUN_FILES && !r->cancelled)
        r->keeping = r->cb.on_file(r->cb.arg, c->path, c->size, fd);
    if (r->keeping)
        loop_timer_stop(r->engine->loop, &r->timer); /* nobody is asked */
}

void run_next_file(struct run *r) {
    r->keeping = false;
    ask_next_file(r);
    finish_if_through(r);
}

static void run_on_compared(void *arg, const struct err *differ) {
    struct run *r = arg;
    AUTO_FD fd = fd_take(&r->file);
    r->comparing = NULL;
    if (differ)
        hand_out(r, &fd);
    else
        r->outcome.counts[r->collected - 1] = 0;
    if (r->keeping)
        return;
    run_next_file(r);
}

static bool is_same(const struct input_file *given, const struct change *c, int fd) {
    char now[INPUT_BYTES];
    if (!given || !given->bytes || given->size != c->size)
        return false;
    ssize_t n = pread(fd, now, given->size, 0);
    return n >= 0 && (uint64_t)n == given->size && memcmp(now, given->bytes, given->size) == 0;
}

/* False: it is another one for sure. */
static bool compare(struct run *r, const struct input_file *given, int *fd) {
    const struct change *c = &r->outcome.files.items[r->collected - 1];
    if (!given || given->bytes || given->size != c->size)
        return false;
    int a = fcntl(*fd, F_DUPFD_CLOEXEC, 3), b = fcntl(given->fd, F_DUPFD_CLOEXEC, 3);
    if (a < 0 || b < 0) {
        fd_close(&a);
        fd_close(&b);
        return false;
    }
    r->file = fd_take(fd);
    r->comparing = compare_begin(r->engine->crew, &a, &b, c->size, run_on_compared, r);
    loop_timer_stop(r->engine->loop, &r->timer);
    return true;
}

/* One that cannot be opened is not there any more. */
static void run_on_file(void *arg, struct file_answer *a) {
    struct run *r = arg;
    const struct change *c = &r->outcome.files.items[r->collected++];
    const struct input_file *given = find_input(r, c->path);
    if (!a->why && is_same(given, c, a->fd))
        r->outcome.counts[r->collected - 1] = 0;
    else if (!a->why && !compare(r, given, &a->fd))
        hand_out(r, &a->fd);
    if (!r->comparing && !r->keeping)
        ask_next_file(r);
    finish_if_through(r);
}

void run_collect_done(struct run *r) {
    files_unask(&r->ask);
    if (r->comparing)
        fd_close(&r->file);
    copy_leave(r->comparing);
    r->comparing = NULL;
}

static void take_changes(struct run *r, struct file_answer *a) {
    outcome_take_files(&r->outcome, a);
    r->outcome.counts = xcalloc(r->outcome.files.n, 1);
    /* SECURITY: holes cost the program nothing, and whoever gets its files may have to pay for
     * them: together they are no larger than its disk. */
    uint64_t left = (uint64_t)r->req.limits.disk_mb << 20;
    for (unsigned i = 0; i < r->outcome.files.n; i++) {
        const struct change *c = &r->outcome.files.items[i];
        bool fits = c->size <= left;
        r->outcome.counts[i] = fits && counts(c);
        r->outcome.files_cut |= !fits;
        left -= r->outcome.counts[i] ? c->size : 0;
    }
}

static void run_on_changes(void *arg, struct file_answer *a) {
    struct run *r = arg;
    if (!a->why)
        take_changes(r, a);
    ask_next_file(r);
    finish_if_through(r);
}

void run_take_usage(struct run *r, struct wire_in *in) {
    struct i_reply_usage m;
    struct err e;
    if (i_reply_usage_get(in, &m, &e) < 0)
        return;
    r->outcome.memory_peak = m.memory_peak;
    r->outcome.cpu_us = m.cpu_us;
    r->is_measured = true;
}

void run_collect_answer(struct run *r, enum asked what, struct wire_in *in) {
    if (what == ASKED_USAGE) {
        run_take_usage(r, in);
        r->outcome.cpu_us += r->heard_ns / 1000u; /* it replaced what was measured with that */
    }
    finish_if_through(r);
}
