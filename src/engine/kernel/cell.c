/* An execution in a live kernel: what it prints and shows, how it ends.
 *
 * The kernel process is hostile, so its word counts only about itself: the time, the limits and the
 * end are ours. A time that is up is an interrupt first; a cell that goes on for the grace period
 * after that is killed with its kernel. */

#include "engine/kernel/cell.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "engine/core/admit.h"
#include "engine/core/state.h"
#include "engine/kernel/cell_end.h"
#include "engine/kernel/cell_shown.h"
#include "engine/kernel/kernel.h"
#include "engine/kernel/kernel_queue.h"
#include "engine/kernel/kernel_talk.h"
#include "engine/process/group.h"
#include "engine/process/live_hold.h"
#include "engine/process/live_state.h"
#include "engine/process/pace.h"
#include "engine/said/told.h"

#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WAITS 2            /* times that its clock is put off, */
#define WAIT_NS   10000000000u /* for so long at the most */

static const uint8_t cell_moves[CELL_STATES_] = {
    [CELL_QUEUED] = 1 << CELL_RUNNING | 1 << CELL_DONE,
    [CELL_RUNNING] = 1 << CELL_FINISHING | 1 << CELL_DONE,
    [CELL_FINISHING] = 1 << CELL_DONE,
};

void cell_move(struct cell *c, enum cell_state to) {
    state_check("cell", cell_moves, c->state, to);
    c->state = to;
}

bool cell_is_over(const struct cell *c) {
    return c->state == CELL_FINISHING || c->state == CELL_DONE;
}

void cell_request_done(struct cell_request *q) {
    json_decref(q->code);
    free(q->env);
    free(q->formats);
    json_decref(q->stdin_text);
    buf_done(&q->extra);
    free(q->tag);
    *q = (struct cell_request){0};
}

static void cell_free(struct deferred *d) {
    struct cell *c = d->arg;
    cell_request_done(&c->req);
    shown_done(&c->shown);
    kept_count(c->account, c->text_bytes, 0);
    buf_done(&c->text[0]);
    buf_done(&c->text[1]);
    free(c->error);
    outcome_done(&c->outcome);
    free(c);
}

const char *cell_id(const struct cell *c) {
    return c->id;
}

const char *cell_tag(const struct cell *c) {
    return c->req.tag;
}

const char *cell_kernel(const struct cell *c) {
    return c->kernel_id;
}

/* ---- its time ---- */

void cell_stop_clocks(struct cell *c) {
    loop_timer_stop(c->kernel->live->engine->loop, &c->timer);
    cpu_limit_stop(&c->cpu_limit);
}

static uint64_t grace_ns(const struct cell *c) {
    return ms_to_ns(c->kernel->live->engine->config.live_grace_ms);
}

void cell_stop(struct cell *c, enum cell_stop why) {
    struct live *l = c->kernel->live;
    if (cell_is_over(c))
        return;
    if (c->stop == STOP_NONE) {
        c->stop = why;
        if (why == STOP_TIMEOUT)
            c->outcome.limit = LIMIT_TIME;
        else if (why == STOP_CPU)
            c->outcome.limit = LIMIT_CPU;
        c->left_ns = grace_ns(c) - grace_ns(c) / 10;
        if (!l->paused)
            loop_timer(l->engine->loop, &c->timer, now_ns() + c->left_ns);
        kernel_hold(c->kernel, false);
    }
    process_signal(&c->kernel->process, SIGINT, SIGNAL_PROCESS);
}

void cell_interrupt(struct cell *c) {
    struct err e;
    if (c->state == CELL_RUNNING) {
        cell_stop(c, STOP_CLIENT);
    } else if (c->state == CELL_QUEUED) {
        kernel_unqueue(c->kernel, c);
        err_user(&e, "interrupted", "interrupted while it waited for its kernel");
        cell_fail(c, &e);
    }
}

/* While the sandbox is not heard, its kernel may have said long ago that the cell is over. It is
 * waited for, but not for ever: a kernel that talks all the time is never rested. */
static bool waits_to_be_heard(struct cell *c, struct timer *t) {
    const struct live *l = c->kernel->live;
    uint64_t now = now_ns(), heard_ns = rest_is_on(&l->rest) ? l->rest.timer.at_ns : now;
    if (heard_ns > now + WAIT_NS)
        heard_ns = now + WAIT_NS;
    if (!pace_rests(l) || c->waits == MAX_WAITS)
        return false;
    c->waits++;
    loop_timer(l->engine->loop, t, heard_ns + grace_ns(c) / 10);
    return true;
}

static void cell_on_timer(struct timer *t) {
    struct cell *c = t->arg;
    if (waits_to_be_heard(c, t))
        return;
    if (c->stop == STOP_NONE) {
        cell_stop(c, STOP_TIMEOUT);
    } else if (!c->asked_twice) { /* Python may sleep over a signal that comes as it falls asleep */
        c->asked_twice = true;
        loop_timer(c->kernel->live->engine->loop, t, now_ns() + grace_ns(c) / 10);
        cell_stop(c, c->stop);
    } else {
        kernel_kill(c->kernel);
    }
}

static uint64_t cell_used_us(void *arg) {
    const struct cell *c = arg;
    uint64_t now_us = group_cpu_us(&c->kernel->process);
    return now_us > c->cpu_base_us ? now_us - c->cpu_base_us : 0;
}

static void cell_on_cpu_limit(void *arg) {
    cell_stop(arg, STOP_CPU);
}

void cell_pause(struct cell *c, bool pause) {
    struct loop *l = c->kernel->live->engine->loop;
    uint64_t now = now_ns();
    if (pause) {
        c->left_ns = c->timer.place && c->timer.at_ns > now ? c->timer.at_ns - now : 1;
        loop_timer_stop(l, &c->timer);
    } else if (!cell_is_over(c)) {
        loop_timer(l, &c->timer, now + c->left_ns);
        if (c->stop == STOP_NONE)
            c->ends_ns = now + c->left_ns;
    }
}

void cell_hold(struct cell *c, bool hold) {
    if (c->state != CELL_RUNNING)
        return;
    c->held = hold;
    kernel_hold(c->kernel, hold && c->stop == STOP_NONE);
}

/* ---- the beginning ---- */

/* What a cell may ask for: the maximum, or what its sandbox got of more than that. */
static int settle_limits(struct cell_request *q, const struct live *l, struct err *e) {
    static const struct limits none;
    const struct limits *most = q->own_bounds ? &none : &l->engine->config.maxima;
    return limits_settle(&l->req.limits, most, LIMIT_OF_EXECUTION, &q->limits, e);
}

static struct cell *cell_alloc(struct kernel *k, struct cell_request *q) {
    struct cell *c = xcalloc(1, sizeof *c);
    c->kernel = k;
    c->account = c->shown.account = &k->live->guest.kept;
    c->req = *q;
    *q = (struct cell_request){0};
    outcome_init(&c->outcome);
    c->profile = k->live->profile;
    c->text[0] = c->text[1] = (struct buf)BUF_INIT;
    c->timer = (struct timer){.fn = cell_on_timer, .arg = c};
    c->cpu_limit =
        (struct cpu_limit){.used_us = cell_used_us, .on_reached = cell_on_cpu_limit, .arg = c};
    c->free_later = (struct deferred){.fn = cell_free, .arg = c};
    memcpy(c->kernel_id, k->id, sizeof c->kernel_id);
    live_hold(k->live);
    return c;
}

struct cell *cell_resume(struct kernel *k, struct cell_request *q) {
    struct cell *c = cell_alloc(k, q);
    cell_move(c, CELL_RUNNING);
    c->resumed = true;
    network_attempts_ask(&c->network, k->live);
    return c;
}

static void emit_start(struct cell *c, const char *kernel_id, bool resumed) {
    AUTO_BUF json = BUF_INIT;
    told_start(c->id, kernel_id, resumed, &json);
    cell_emit(c, "start", &json);
}

void cell_call(struct cell *c, const struct cell_callbacks *cb) {
    c->cb = *cb;
    emit_start(c, c->kernel_id, true);
}

struct cell *cell_make(struct kernel *k, struct cell_request *q, const struct cell_callbacks *cb,
                       struct err *e) {
    if (settle_limits(q, k->live, e) < 0)
        return NULL;
    struct cell *c = cell_alloc(k, q);
    c->cb = *cb;
    id_make("exe_", c->id, sizeof c->id);
    return c;
}

static void send_code(struct cell *c) {
    AUTO_BUF head = BUF_INIT;
    AUTO_BUF tail = BUF_INIT;
    struct jw j = JW_INIT(&head);
    jw_object(&j);
    jw_key_str(&j, "op", c->req.op ? c->req.op : "execute");
    jw_key_str(&j, "id", c->id);
    jw_key(&j, "code");
    j = (struct jw){.to = &tail, .comma = true};
    jw_key_bool(&j, "silent", c->req.silent);
    jw_key_bool(&j, "store_history", !c->req.no_history);
    jw_key_bool(&j, "allow_stdin", c->req.allow_stdin || c->req.stdin_text);
    jw_key_bool(&j, "has_stdin", c->req.stdin_text);
    if (c->req.env) {
        jw_key(&j, "env");
        jw_raw(&j, c->req.env, strlen(c->req.env));
    }
    if (c->req.formats) {
        jw_key(&j, "formats");
        jw_raw(&j, c->req.formats, strlen(c->req.formats));
    }
    if (c->req.extra.len)
        jw_raw(&j, c->req.extra.data, c->req.extra.len);
    jw_object_end(&j);
    const struct kernel_text code = {c->req.code, 0, json_string_length(c->req.code)};
    kernel_do_text(c->kernel, &head, &code, &tail);
}

/* What was printed since the last execution belongs to nobody else. */
static void take_late(struct cell *c) {
    struct kernel *k = c->kernel;
    for (int i = 0; i < 2; i++) {
        struct buf late;
        uint64_t total = k->out[i].total;
        output_take(&k->out[i], c->req.limits.output_bytes, &late);
        uint64_t lost = total - late.len;
        if (lost)
            buf_addf(&late, "\ncloche: %" PRIu64 " bytes more were printed between two cells\n",
                     lost);
        if (late.len && late.len <= k->out[i].cap) {
            output_put(&k->out[i], late.data, late.len);
            cell_print(c, i + 1, late.data, late.len);
        }
        buf_done(&late);
    }
}

void cell_begin(struct cell *c) {
    struct kernel *k = c->kernel;
    struct live *l = k->live;
    cell_move(c, CELL_RUNNING);
    c->kernel_restarted = k->is_fresh;
    k->is_fresh = false;
    c->execution_count = k->execution_count + 1;
    c->changed_since_ns = file_stamp_ns();
    c->cpu_base_us = group_cpu_us(&k->process);
    network_attempts_begin(&c->network, l);
    network_attempts_ask(&c->network, l);
    group_usage(&k->process); /* what happened before is not ours */
    c->outcome.given_ns = c->outcome.started_ns = now_ns();
    l->executions++;
    l->engine->counts.runs++;
    live_changed(l);
    emit_start(c, k->id, false);
    take_late(c);
    c->ends_ns = c->outcome.started_ns + ms_to_ns(c->req.limits.timeout_ms);
    loop_timer(l->engine->loop, &c->timer, c->ends_ns);
    if (cgroup_fds_there(l->sandbox->cgroup))
        cpu_limit_begin(&c->cpu_limit, l->engine->loop, c->req.limits.cpu_seconds,
                        l->req.limits.cpus_percent);
    send_code(c);
}
