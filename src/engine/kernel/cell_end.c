/* See cell_end.h. */

#include "engine/kernel/cell_end.h"

#include "base/clock.h"
#include "engine/core/files.h"
#include "engine/kernel/cell.h"
#include "engine/kernel/cell_shown.h"
#include "engine/kernel/kernel.h"
#include "engine/process/group.h"
#include "engine/process/live_hold.h"
#include "engine/process/live_state.h"
#include "engine/said/told.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From here on what is printed is the next one's. */
static void take_text(struct cell *c) {
    for (int i = 0; i < 2; i++) {
        struct output *o = &c->kernel->out[i];
        c->outcome.output_bytes += o->total;
        c->full |= output_truncated(o);
        c->outcome.cut[i] = c->resumed || output_truncated(o);
        c->outcome.crowded |= output_starved(o);
        output_take(o, LATE_MAX, &c->text[i]);
    }
    c->text_bytes = c->text[0].len + c->text[1].len;
    kept_count(c->account, 0, c->text_bytes);
}

static void cell_close(struct cell *c, const struct err *why) {
    struct kernel *k = c->kernel;
    struct live *l = k->live;
    bool ran = k->running == c;
    cell_stop_clocks(c);
    files_unask(&c->ask);
    live_unask(l, c);
    network_attempts_done(&c->network, l);
    if (ran && !cell_is_over(c))
        take_text(c);
    cell_move(c, CELL_DONE);
    if (ran)
        kernel_ran(k, c->stop != STOP_NONE || c->was_interrupted);
    live_said(l); /* whoever hears of it tells the end */
    if (c->cb.on_done)
        c->cb.on_done(c->cb.arg, c, why);
    c->kernel = NULL;
    live_release(l);
    loop_defer(l->engine->loop, &c->free_later);
}

void cell_fail(struct cell *c, const struct err *why) {
    if (c->state != CELL_DONE)
        cell_close(c, why);
}

/* Takes `json`. */
void cell_set_error(struct cell *c, struct buf *json) {
    cell_emit(c, "error", json);
    free(c->error);
    c->error = buf_take(json);
}

static void take_usage(struct cell *c) {
    struct live *l = c->kernel->live;
    struct cgroup_usage u = group_usage(&c->kernel->process);
    uint64_t all = cgroup_fds_memory_peak(l->sandbox->cgroup);
    c->outcome.cpu_us = u.cpu_us > c->cpu_base_us ? u.cpu_us - c->cpu_base_us : 0;
    l->cpu_told_us += c->outcome.cpu_us;
    c->outcome.memory_peak = u.memory_peak;
    if (all > l->memory_peak)
        l->memory_peak = all;
    outcome_met_in(&c->outcome, &u, l->sandbox);
    if (c->full || c->shown.cut)
        outcome_met(&c->outcome, LIMIT_OUTPUT);
    network_attempts_end(&c->network, l, &c->outcome.denied);
}

static void cell_close_if_through(struct cell *c) {
    if (c->asking == 0)
        cell_close(c, NULL);
}

static void cell_on_changes(void *arg, struct file_answer *a) {
    struct cell *c = arg;
    c->asking--;
    if (!a->why)
        outcome_take_files(&c->outcome, a);
    cell_close_if_through(c);
}

static void cell_on_traffic(void *arg, struct wire_in *in) {
    struct cell *c = arg;
    if (!in)
        return; /* the sandbox ends, and the cell with it */
    c->asking--;
    outcome_take_network(&c->outcome, c->kernel->live->sandbox, in, &c->network.before);
    cell_close_if_through(c);
}

/* All is known but the files that it made. */
void cell_finish(struct cell *c) {
    c->outcome.ended_ns = now_ns();
    cell_move(c, CELL_FINISHING);
    c->waits_for_input = false;
    cell_stop_clocks(c);
    cell_flush_tails(c);
    take_text(c);
    take_usage(c);
    c->ask = (struct file_ask){.fn = cell_on_changes, .arg = c};
    struct sandbox *s = c->kernel->live->sandbox;
    bool ask = (!c->req.silent && !sandbox_is_empty(s)) || c->stop != STOP_NONE ||
               c->was_interrupted; /* a signal is answered before that */
    c->asking += network_ask_used(s, cell_on_traffic, c);
    c->asking += ask && outcome_ask_files(s, c->changed_since_ns, &c->ask);
    cell_close_if_through(c);
}

/* It has a limit of its own and was far from it. */
static bool ended_by_others(const struct cell *c) {
    const struct process *p = &c->kernel->process;
    uint64_t most = config_group_bytes(&p->limits);
    return p->limits.memory_mb && group_peak(p) < most - most / 8;
}

/* Why the process is dead, for the one who reads the result. */
static void explain(struct cell *c, const char *why, char *out, size_t cap) {
    const struct limits *own = &c->kernel->process.limits;
    if (c->stop == STOP_TIMEOUT)
        snprintf(out, cap, "it ran longer than %u ms and ignored the interrupt",
                 c->req.limits.timeout_ms);
    else if (c->outcome.limit == LIMIT_CPU)
        snprintf(out, cap, "it used more than %u s of CPU time", c->req.limits.cpu_seconds);
    else if (c->outcome.status == OUTCOME_MEMORY && ended_by_others(c))
        snprintf(out, cap, "all kernels of the sandbox together needed more than %u MB of memory",
                 c->kernel->live->req.limits.memory_mb);
    else if (c->outcome.status == OUTCOME_MEMORY)
        snprintf(out, cap, "it needed more than %u MB of memory",
                 own->memory_mb ? own->memory_mb : c->kernel->live->req.limits.memory_mb);
    else if (c->stop == STOP_CLIENT)
        snprintf(out, cap, "it ignored the interrupt");
    else if (c->stop == STOP_KERNEL)
        snprintf(out, cap, "somebody restarted or deleted it");
    else if (why)
        snprintf(out, cap, "%s", why);
    else if (c->outcome.signal > 0)
        snprintf(out, cap, "it died of signal %d (%s)", c->outcome.signal,
                 strsignal(c->outcome.signal));
    else
        snprintf(out, cap, "it left with status %d", c->outcome.exit_code);
}

void cell_killed(struct cell *c, int status, const char *why) {
    char reason[240], text[300];
    if (cell_is_over(c))
        return; /* it had ended before */
    outcome_exited(&c->outcome, status);
    bool memory = c->outcome.limit == LIMIT_MEMORY || group_ran_out_of_memory(&c->kernel->process);
    if (c->stop == STOP_CPU)
        c->outcome.limit = LIMIT_CPU;
    else if (c->stop == STOP_TIMEOUT)
        c->outcome.limit = LIMIT_TIME;
    c->outcome.status = c->stop == STOP_TIMEOUT ? OUTCOME_TIMEOUT
                        : c->stop == STOP_NONE && memory && c->outcome.signal == SIGKILL
                            ? OUTCOME_MEMORY
                            : OUTCOME_KILLED;
    explain(c, why, reason, sizeof reason);
    snprintf(text, sizeof text, "the kernel died: %s; its variables are lost", reason);
    struct buf json = BUF_INIT;
    told_error("KernelDied", text, NULL, 0, &json);
    cell_set_error(c, &json);
    cell_finish(c);
}

void cell_lost(struct cell *c) {
    struct err e;
    err_user(&e, "sandbox_lost", "its result was lost when the server was restarted");
    if (!cell_is_over(c)) /* else its end was heard */
        cell_fail(c, &e);
}
