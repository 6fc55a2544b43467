/* One program, from request to receipt. The states and who may follow whom are in run_moves[];
 * one function changes them.
 *
 * The hot path is: run_new → a ready sandbox → K_RUN → output → K_DONE → on_done, with no question
 * to anyone else in between; another size of the disk, input files and changed files each cost a
 * question to init. Of another memory init is only told: a kernel that starts before init has said
 * so in /proc waits for it (RUN_MEMORY). The reply (on_done) goes out before the sandbox is torn
 * down.
 *
 * Order: before a control frame or an exit is handled, what the two pipes hold at that moment is
 * taken, and init's notes are read: the program caused both before it ended. */

#include "engine/oneshot/run.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "engine/core/engine.h"
#include "engine/core/state.h"
#include "engine/oneshot/collect.h"
#include "engine/oneshot/heard.h"
#include "engine/oneshot/internal.h"
#include "engine/oneshot/request.h"
#include "loop/crew.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define GRACE_MS  2000 /* for I_KILL to be answered */
#define MAX_WAITS 2    /* times that its clock is put off, */
#define WAIT_MS   500  /* for so long */

static const uint8_t run_moves[RUN_STATES_] = {
    [RUN_QUEUED] = 1 << RUN_STAGING | 1 << RUN_DONE,
    [RUN_STAGING] = 1 << RUN_ACTIVE | 1 << RUN_DONE,
    [RUN_ACTIVE] = 1 << RUN_KILLING | 1 << RUN_COLLECTING | 1 << RUN_DONE,
    [RUN_KILLING] = 1 << RUN_COLLECTING | 1 << RUN_DONE,
    [RUN_COLLECTING] = 1 << RUN_DONE,
};

void run_move(struct run *r, enum run_state to) {
    state_check("run", run_moves, r->state, to);
    r->state = to;
}

const char *run_id(const struct run *r) {
    return r->id;
}

static void run_free(struct deferred *d) {
    struct run *r = d->arg;
    inputs_close(r->engine->crew, r->req.inputs, r->req.ninputs);
    run_request_done(&r->req);
    output_free(&r->out[0]);
    output_free(&r->out[1]);
    shown_done(&r->shown);
    feed_done(&r->stdin_feed);
    outcome_done(&r->outcome);
    free(r->error_name);
    free(r->error_value);
    for (unsigned i = 0; i < r->ntraceback; i++)
        free(r->traceback[i]);
    free(r->traceback);
    buf_done(&r->returned);
    free(r);
}

/* The end of the run as far as the engine is concerned, with a result or with `why`. */
static void run_close(struct run *r, const struct err *why) {
    struct engine *g = r->engine;
    run_move(r, RUN_DONE);
    loop_timer_stop(g->loop, &r->timer);
    cpu_limit_stop(&r->cpu_limit);
    feed_stop(&r->stdin_feed);
    output_end(&r->out[0]);
    output_end(&r->out[1]);
    rest_end(&r->rest);
    run_unhear(r);
    stage_done(&r->stage);
    run_collect_done(r);
    run_settle(r);
    struct sandbox *s = r->sandbox;
    r->sandbox = NULL;
    if (s)
        s->guest = NULL;
    if (!r->cancelled)
        r->cb.on_done(r->cb.arg, r, why);
    if (s)
        sandbox_leave(s); /* behind the reply, which on_done deferred */
    loop_defer(g->loop, &r->free_later);
}

void run_finish(struct run *r) {
    run_close(r, NULL);
}

void run_fail(struct run *r, const struct err *why) {
    run_close(r, why);
}

static void run_on_fail(void *owner, const struct err *why) {
    run_fail(owner, why);
}

static void run_on_lost(void *owner) {
    struct run *r = owner;
    struct err e;
    err_user(&e, "sandbox_lost",
             "the sandbox died under the program: a process of ours was killed");
    run_close(r, &e);
}

void run_cancel(struct run *r) {
    if (r->state == RUN_DONE)
        return;
    r->cancelled = true;
    pool_leave(r->pool, &r->guest);
    run_close(r, NULL);
}

/* ---- the program runs ---- */

static void run_on_data(struct output *o, const void *data, size_t len) {
    struct run *r = o->arg;
    if (!r->cancelled && !(r->req.flags & RUN_QUIET))
        r->cb.on_output(r->cb.arg, o == &r->out[0] ? 1 : 2, data, len);
}

static void run_pump_stdin(void *arg);

static void run_on_rested(struct rest *rest) {
    struct run *r = rest->arg;
    outputs_hold(r->out, HOLD_REST, false);
    run_go_on(r);
    run_pump_stdin(r);
}

void run_pay(struct run *r, uint64_t cpu_ns) {
    r->heard_ns += cpu_ns;
    if (r->state == RUN_ACTIVE && rest_after(&r->rest, cpu_ns))
        outputs_hold(r->out, HOLD_REST, true);
}

static void run_on_cost(struct output *o, uint64_t cpu_ns) {
    run_pay(o->arg, cpu_ns);
}

void run_catch_up(struct run *r) {
    output_drain(&r->out[0]);
    output_drain(&r->out[1]);
    if (r->sandbox) /* whoever hears what was printed may call it off */
        chan_pump(&r->sandbox->req);
}

void run_ended(struct run *r, enum run_end end) {
    r->end = end;
    r->outcome.ended_ns = now_ns();
    loop_timer_stop(r->engine->loop, &r->timer);
    cpu_limit_stop(&r->cpu_limit);
}

void run_kill(struct run *r, enum run_end end) {
    struct wire_out o;
    run_ended(r, end);
    if (end == END_MEMORY || end == END_CPU || end == END_SIGNAL) {
        r->outcome.signal = SIGKILL;
        r->outcome.exit_code = 128 + SIGKILL;
    }
    run_move(r, RUN_KILLING);
    run_ask_usage(r); /* death may take longer than we wait for it */
    wire_begin(&o, WIRE_I_KILL);
    loop_timer_in_ms(r->engine->loop, &r->timer, GRACE_MS);
    if (!sandbox_ask(r->sandbox, ASKED_KILL, &o)) {
        run_collect(r);
    }
}

/* What it shows is being read, and it waits for that. */
static bool is_put_off(struct run *r) {
    if (!run_is_heard(r) || r->waits == MAX_WAITS)
        return false;
    r->waits++;
    loop_timer_in_ms(r->engine->loop, &r->timer, WAIT_MS);
    return true;
}

static void run_on_timer(struct timer *t) {
    struct run *r = t->arg;
    struct err e;
    switch (r->state) {
    case RUN_QUEUED:
        pool_late(r->pool, &r->guest, &e);
        pool_leave(r->pool, &r->guest);
        run_close(r, &e);
        return;
    case RUN_ACTIVE:
        if (!is_put_off(r))
            run_kill(r, END_TIMEOUT);
        return;
    case RUN_KILLING: /* init does not answer: end all of it and say what is known */
        run_catch_up(r);
        if (r->state != RUN_KILLING)
            return; /* it has answered at last */
        run_measure(r);
        run_finish(r);
        return;
    case RUN_COLLECTING:
    case RUN_STAGING:
        err_user(&e, "sandbox_lost", "the sandbox did not answer");
        run_fail(r, &e);
        return;
    case RUN_DONE:
    case RUN_STATES_:
        return;
    }
}

static uint64_t run_used_us(void *arg) {
    const struct run *r = arg;
    return cgroup_fds_cpu_us(r->sandbox->cgroup) + r->heard_ns / 1000u;
}

static void run_on_cpu_limit(void *arg) {
    run_kill(arg, END_CPU);
}

static void send_run(struct run *r) {
    struct run_msg m = {.flags = r->req.flags & (uint32_t)~RUN_CODE_FD,
                        .profile = r->pool->config->name,
                        .limits = r->req.limits,
                        .nargs = r->req.nargs,
                        .nenv = r->req.nenv,
                        .code = r->req.code,
                        .code_len = r->req.code_len,
                        .code_fd = r->req.code_fd};
    for (unsigned i = 0; i < r->req.nargs; i++)
        m.args[i] = r->req.args[i];
    for (unsigned i = 0; i < r->req.nenv; i++)
        m.env[i] = r->req.env[i];
    if (m.code_fd >= 0)
        m.flags |= RUN_CODE_FD;
    if (r->stage.unheard)
        m.flags |= RUN_MEMORY;
    struct wire_out o;
    run_put(&o, WIRE_K_RUN, &m);
    chan_send(&r->sandbox->ctl, &o);
}

static void run_pump_stdin(void *arg);

static void run_start(struct run *r) {
    struct sandbox *s = r->sandbox;
    const struct limits *l = &r->req.limits;
    struct err e;
    run_move(r, RUN_ACTIVE);
    for (int i = 0; i < 2; i++) {
        r->out[i].arg = r;
        r->out[i].on_data = run_on_data;
        r->out[i].on_cost = run_on_cost;
        r->out[i].account = &r->guest.kept;
        r->out[i].owner = crew_owner(r->guest.tenant);
        if (output_begin(&r->out[i], &r->engine->reading, s->fds[SANDBOX_STDOUT + i],
                         l->output_bytes, &e) < 0) {
            run_fail(r, &e);
            return;
        }
    }
    if (r->req.flags & RUN_STDIN)
        run_pump_stdin(r);
    else
        fd_close(&s->fds[SANDBOX_STDIN]);
    run_hear_from(r);
    cgroup_fds_begin(s->cgroup);
    r->outcome.started_ns = now_ns();
    send_run(r);
    loop_timer(r->engine->loop, &r->timer, r->outcome.started_ns + ms_to_ns(l->timeout_ms));
    if (cgroup_fds_there(s->cgroup))
        cpu_limit_begin(&r->cpu_limit, r->engine->loop, l->cpu_seconds, l->cpus_percent);
    if (r->cb.on_start)
        r->cb.on_start(r->cb.arg, r);
}

static void run_on_staged(void *arg, const struct err *why) {
    if (why)
        run_fail(arg, why);
    else
        run_start(arg);
}

static void run_on_assign(void *owner, struct sandbox *s) {
    struct run *r = owner;
    struct err e;
    run_move(r, RUN_STAGING);
    r->sandbox = s;
    r->outcome.given_ns = now_ns();
    r->engine->counts.runs++;
    loop_timer(r->engine->loop, &r->timer,
               r->outcome.given_ns + ms_to_ns(r->engine->config.queue_ms));
    r->stage = (struct stage){.sandbox = s,
                              .limits = &r->req.limits,
                              .network = r->req.network,
                              .tree = r->req.tree ? r->req.tree->id : NULL,
                              .inputs = r->req.inputs,
                              .ninputs = r->req.ninputs,
                              .waits_itself = s->version >= RUN_SHOW_SINCE,
                              .done = run_on_staged,
                              .arg = r};
    int more = stage_begin(&r->stage, &e);
    if (more < 0)
        run_fail(r, &e);
    else if (more == 0)
        run_start(r);
}

static struct denials *run_denied(void *owner, uint32_t process) {
    struct run *r = owner;
    (void)process;
    return &r->outcome.denied;
}

static void run_on_limit(void *owner, enum limit_kind kind) {
    struct run *r = owner;
    if (!run_goes_on(r))
        return;
    if (kind == LIMIT_MEMORY || kind == LIMIT_CPU)
        run_kill(r, kind == LIMIT_MEMORY ? END_MEMORY : END_CPU);
    else
        r->met = kind;
}

static void run_on_answer(void *owner, enum asked what, struct wire_in *in) {
    struct run *r = owner;
    switch (r->state) {
    case RUN_KILLING:
        if (what == ASKED_USAGE)
            run_take_usage(r, in);
        if (what != ASKED_KILL)
            return;
        run_catch_up(r);
        if (r->state == RUN_KILLING)
            run_collect(r);
        return;
    case RUN_COLLECTING:
        run_collect_answer(r, what, in);
        return;
    case RUN_QUEUED:
    case RUN_STAGING:
    case RUN_ACTIVE: /* a signal was delivered, or not */
    case RUN_DONE:
    case RUN_STATES_:
        return;
    }
}

static const struct guest_kind run_kind = {
    .assign = run_on_assign,
    .fail = run_on_fail,
    .frame = run_on_frame,
    .answer = run_on_answer,
    .denied = run_denied,
    .limit = run_on_limit,
    .exited = run_on_exited,
    .lost = run_on_lost,
};

/* ---- from the client ---- */

static void stdin_taken(struct run *r, size_t taken) {
    if (taken && !r->cancelled)
        r->cb.on_stdin(r->cb.arg, taken);
}

static void run_pump_stdin(void *arg) {
    struct run *r = arg;
    size_t taken = 0;
    int *fd = r->sandbox ? &r->sandbox->fds[SANDBOX_STDIN] : NULL;
    if (!fd || *fd < 0 || r->state != RUN_ACTIVE)
        return;
    if (feed_backlog(&r->stdin_feed) && rest_is_on(&r->rest)) {
        feed_stop(&r->stdin_feed);
        return;
    }
    uint64_t began = thread_cpu_ns(); /* whoever waits for its stdin is woken at our cost */
    enum fed how = feed_pump(&r->stdin_feed, *fd, &taken);
    run_pay(r, thread_cpu_ns() - began);
    if (how == FED_GONE)
        r->stdin_feed.closed = true;
    if (how != FED_SOME && r->stdin_feed.closed)
        fd_close(fd);
    stdin_taken(r, taken);
    if (how == FED_GONE && !r->cancelled)
        r->cb.on_stdin(r->cb.arg, 0);
}

void run_stdin(struct run *r, const void *data, size_t len) {
    if (r->stdin_feed.closed)
        return;
    feed_add(&r->stdin_feed, data, len);
    r->stdin_feed.closed = len == 0;
    run_pump_stdin(r);
}

void run_stdin_text(struct run *r, json_t *text) {
    r->stdin_feed.text = json_incref(text);
    run_pump_stdin(r);
}

size_t run_stdin_backlog(const struct run *r) {
    return feed_backlog(&r->stdin_feed);
}

void run_signal(struct run *r, int sig) {
    struct err e;
    if (run_goes_on(r) && sig == SIGKILL) {
        run_kill(r, END_SIGNAL);
    } else if (run_goes_on(r)) {
        struct wire_out o;
        i_signal_put(&o, &(struct i_signal){.number = 0, /* the first kernel */
                                            .signal = (uint32_t)sig,
                                            .scope = SIGNAL_PROCESS});
        sandbox_ask(r->sandbox, ASKED_SIGNAL, &o);
    } else if (r->state == RUN_QUEUED) {
        pool_leave(r->pool, &r->guest);
        err_user(&e, "interrupted", "interrupted while it waited for a sandbox");
        run_close(r, &e);
    }
}

void run_hold(struct run *r, bool hold) {
    if (r->state != RUN_ACTIVE)
        return;
    r->is_held = hold;
    outputs_hold(r->out, HOLD_READER, hold);
    run_go_on(r);
}

static uint64_t run_kept_most(const struct run_request *q) {
    return 2 * (uint64_t)q->limits.output_bytes + (q->flags & RUN_SHOWN ? SHOWN_BYTES_MAX : 0);
}

int run_new(struct engine *g, struct run_request *q, const struct run_callbacks *cb,
            struct run **ret, struct err *e) {
    struct profile_pool *p;
    if (run_admit(g, q, &p, e) < 0)
        return -1;
    struct run *r = xcalloc(1, sizeof *r);
    r->engine = g;
    r->pool = p;
    r->req = *q;
    *q = (struct run_request){.code_fd = -1};
    r->cb = *cb;
    outcome_init(&r->outcome);
    r->timer = (struct timer){.fn = run_on_timer, .arg = r};
    r->cpu_limit =
        (struct cpu_limit){.used_us = run_used_us, .on_reached = run_on_cpu_limit, .arg = r};
    r->stdin_feed = (struct feed){.loop = g->loop, .on_room = run_pump_stdin, .arg = r};
    feed_init(&r->stdin_feed);
    r->returned = (struct buf)BUF_INIT;
    r->out[0].kept = r->out[1].kept = (struct buf)BUF_INIT;
    r->out[0].watch.fd = r->out[1].watch.fd = r->out[0].fd = r->out[1].fd = -1;
    r->free_later = (struct deferred){.fn = run_free, .arg = r};
    r->warm = p->ready != NULL;
    id_make("exe_", r->id, sizeof r->id);
    *ret = r;
    r->guest = (struct guest){.kind = &run_kind,
                              .owner = r,
                              .limits = &r->req.limits,
                              .id = r->id,
                              .tenant = run_tenant(&r->req),
                              .files_bytes = r->req.files_bytes,
                              .kept = {.engine = g, .most = run_kept_most(&r->req)}};
    r->shown.account = &r->guest.kept;
    r->rest = (struct rest){
        .engine = g, .tenant = run_tenant(&r->req), .on_rested = run_on_rested, .arg = r};
    loop_timer(g->loop, &r->timer, r->outcome.born_ns + ms_to_ns(g->config.queue_ms));
    pool_enter(p, &r->guest, run_tenant(&r->req));
    return 0;
}
