/* A kernel of a live sandbox: a process that runs one execution after the other and keeps its state
 * between them. When the process dies, what ran in it ends as killed, and another process takes its
 * place; the executions that wait do so for that one. */

#include "engine/kernel/kernel.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/list.h"
#include "base/log.h"
#include "engine/core/state.h"
#include "engine/kernel/cell.h"
#include "engine/kernel/cell_end.h"
#include "engine/kernel/cell_shown.h"
#include "engine/kernel/kernel_query.h"
#include "engine/kernel/kernel_queue.h"
#include "engine/kernel/kernel_talk.h"
#include "engine/kernel/lent.h"
#include "engine/process/group.h"
#include "engine/process/live_state.h"
#include "engine/process/pace.h"
#include "loop/crew.h"

#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define FAIL_MAX   3
#define RETRY_MS   200u
#define HUNG_UP_MS 2000

/* A process may end in any state, and another one comes. */
static const uint8_t kernel_moves[KERNEL_STATES_] = {
    [KERNEL_STARTING] =
        1 << KERNEL_STARTING | 1 << KERNEL_IDLE | 1 << KERNEL_BUSY | 1 << KERNEL_ENDING,
    [KERNEL_IDLE] = 1 << KERNEL_STARTING | 1 << KERNEL_BUSY | 1 << KERNEL_ENDING,
    [KERNEL_BUSY] = 1 << KERNEL_STARTING | 1 << KERNEL_IDLE | 1 << KERNEL_ENDING,
    [KERNEL_ENDING] = 1 << KERNEL_STARTING | 1 << KERNEL_ENDING,
};

void kernel_move(struct kernel *k, enum kernel_state to) {
    state_check("kernel", kernel_moves, k->state, to);
    k->state = to;
}

/* ---- the process ---- */

void kernel_set_up(struct kernel *k, const char *id) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    const char *all = k->live->req.env;
    jw_object(&j);
    jw_key_str(&j, "op", "setup");
    jw_key_str(&j, "cwd", k->cwd);
    if (id)
        jw_key_str(&j, "id", id);
    json_auto_t *env = all ? json_loads(all, 0, NULL) : json_object();
    json_auto_t *own = k->env ? json_loads(k->env, 0, NULL) : NULL;
    if (own)
        json_object_update(env, own);
    jw_key(&j, "env");
    jw_json(&j, env, "{}");
    jw_object_end(&j);
    kernel_do(k, &json);
}

static void kernel_on_data(struct output *o, const void *data, size_t len) {
    struct kernel *k = o->arg;
    if (k->running && !cell_is_over(k->running))
        cell_print(k->running, o == &k->out[0] ? 1 : 2, data, len);
}

static void kernel_on_cost(struct output *o, uint64_t cpu_ns) {
    struct kernel *k = o->arg;
    pace_heard(k->live, &k->process, cpu_ns);
}

/* Between executions somebody may print, too: that is kept for the next one. */
static int watch_outputs(struct kernel *k, struct err *e) {
    for (int i = 0; i < 2; i++) {
        buf_done(&k->out[i].kept); /* of the process before */
        k->out[i].arg = k;
        k->out[i].on_data = kernel_on_data;
        k->out[i].on_cost = kernel_on_cost;
        k->out[i].account = &k->live->guest.kept;
        k->out[i].owner = crew_owner(k->live->req.tenant);
        output_hold(&k->out[i], HOLD_REST, rest_is_on(&k->live->rest));
        if (output_begin(&k->out[i], &k->live->engine->reading, k->process.fds[1 + i], LATE_MAX,
                         e) < 0)
            return -1;
    }
    process_close_stdin(&k->process); /* see input() */
    return 0;
}

static void tell_ready(struct kernel *k, const struct err *why) {
    while (k->waits) {
        struct kernel_wait *w = LIST_POP(&k->waits, next);
        w->fn(w->arg, k, why);
        free(w);
    }
}

static void tell_news(struct kernel *k, enum kernel_news news) {
    for (struct kernel_watcher *w = k->watchers, *next; w; w = next) {
        next = w->next;
        w->on_news(w, news);
    }
}

static void become_idle(struct kernel *k) {
    kernel_move(k, KERNEL_IDLE);
    k->was_ready = true;
    k->failures = 0;
    tell_news(k, KERNEL_BACK); /* not to those who hear of it only now */
    tell_ready(k, NULL);
    kernel_go_on(k);
}

/* The kernel's answer to a question behind what ran when the last server died. */
static void kernel_on_synced(void *arg, const char *json, size_t len, const struct err *why) {
    struct kernel *k = arg;
    (void)json, (void)len;
    if (!why && k->running && k->running->resumed && !cell_is_over(k->running))
        cell_lost(k->running);
}

static void kernel_on_resumed(void *owner) {
    struct kernel *k = owner;
    struct err e;
    if (!k->begun || watch_outputs(k, &e) < 0) {
        kernel_kill(k);
        return;
    }
    kernel_move(k, k->running ? KERNEL_BUSY : KERNEL_IDLE);
    if (!k->running)
        return;
    for (int i = 0; i < 2; i++)
        output_reset(&k->out[i], k->running->req.limits.output_bytes);
    if (kernel_query(k, "sync", "", kernel_on_synced, k, &e) == 0)
        loop_timer_stop(k->live->engine->loop, &k->queries->late); /* however long it runs */
}

static void kernel_on_set_up(void *arg, const char *json, size_t len, const struct err *why) {
    struct kernel *k = arg;
    (void)json, (void)len;
    if (k->process.state != PROCESS_READY || k->state == KERNEL_ENDING)
        return;                 /* it died over it: another one comes */
    if (why && !k->was_ready) { /* its directory is not there */
        struct err e;
        err_user(&e, "bad_value", "the kernel's directory %.200s cannot be used: %.150s", k->cwd,
                 why->text);
        k->deleted = true;
        tell_ready(k, &e);
        kernel_kill(k);
        return;
    }
    become_idle(k);
}

static void kernel_begin(struct kernel *k) {
    struct wire_out o;
    struct err e;
    const struct limits limits = group_self_limits(&k->process);
    if (watch_outputs(k, &e) < 0) {
        log_error("kernel error=%s", log_text(e.text));
        kernel_kill(k);
        return;
    }
    k_live_put(&o, &(struct k_live){.limits = limits});
    chan_send(k->process.ctl, &o);
    k->begun = true;
    if (pace_rests(k->live))
        chan_pause(k->process.ctl);
    live_changed(k->live);
    if (k->cwd) {
        kernel_query(k, "setup", "", kernel_on_set_up, k, &e);
        return;
    }
    if (k->env || k->live->req.env)
        kernel_set_up(k, NULL);
    become_idle(k);
}

static void kernel_on_ready(void *owner) {
    kernel_begin(owner);
}

void kernel_catch_up(struct kernel *k) {
    output_drain(&k->out[0]);
    output_drain(&k->out[1]);
    if (k->live->sandbox) /* whoever hears what was printed may end it */
        chan_pump(&k->live->sandbox->req);
}

void kernel_hold(struct kernel *k, bool hold) {
    struct chan *ctl = k->process.ctl;
    outputs_hold(k->out, HOLD_READER, hold);
    if (ctl && hold)
        chan_pause(ctl);
    else if (ctl && ctl->paused && !pace_rests(k->live))
        chan_resume(ctl);
}

/* Those that were told to be kernels; the others have something to say before that. */
static void kernel_hear(void *owner, bool on) {
    struct kernel *k = owner;
    if (!k->begun)
        return;
    if (!on)
        chan_pause(k->process.ctl);
    else if (!k->running || !k->running->held || k->running->stop != STOP_NONE)
        kernel_hold(k, false);
}

static void kernel_read(void *owner, bool on) {
    struct kernel *k = owner;
    outputs_hold(k->out, HOLD_REST, !on);
}

static void kernel_on_dying(void *owner) {
    struct kernel *k = owner;
    for (int i = 0; i < 2; i++) {
        output_drain(&k->out[i]);
        output_end(&k->out[i]);
    }
}

void kernel_kill(struct kernel *k) {
    kernel_move(k, KERNEL_ENDING);
    process_kill(&k->process);
}

void kernel_give_up(struct kernel *k, const char *why) {
    k->broken = why;
    kernel_kill(k);
}

static const char hung_up[] = "it closed its connection to cloche";

/* One that dies hangs up as well, and its end is told soon, as soon as the machine lets it be. */
static void kernel_on_hung_up(void *owner) {
    struct kernel *k = owner;
    loop_timer_in_ms(k->live->engine->loop, &k->retry, HUNG_UP_MS);
}

/* ---- its end, and the next process ---- */

static void kernel_free(struct deferred *d) {
    struct kernel *k = d->arg;
    output_free(&k->out[0]);
    output_free(&k->out[1]);
    free(k->env);
    free(k->cwd);
    free(k->label);
    buf_done(&k->lasting);
    free(k);
}

void kernel_forget(struct kernel *k, const struct err *why) {
    struct live *l = k->live;
    k->forgotten = true;
    LIST_REMOVE(&l->kernels, k, next);
    loop_timer_stop(l->engine->loop, &k->retry);
    kernel_untell(k);
    kernel_unhear(k);
    live_unask(l, k);
    output_end(&k->out[0]); /* before they are closed: the warden may hold them, too */
    output_end(&k->out[1]);
    process_done(&k->process);
    if (k->running)
        cell_fail(k->running, why);
    kernel_fail_queue(k, why);
    kernel_fail_queries(k, why);
    lent_end(k);
    tell_ready(k, why);
    while (k->watchers) {
        struct kernel_watcher *w = k->watchers;
        kernel_unwatch(w);
        w->on_news(w, KERNEL_GONE);
    }
    loop_defer(l->engine->loop, &k->free_later);
}

void kernel_ended_with(struct live *l, const struct err *why) {
    while (l->kernels)
        kernel_forget(l->kernels, why);
}

void kernel_start(struct kernel *k) {
    kernel_move(k, KERNEL_STARTING);
    process_start(&k->process, k->live);
}

static void kernel_on_retry(struct timer *t) {
    struct kernel *k = t->arg;
    if (k->process.state == PROCESS_NONE)
        kernel_start(k);
    else if (k->process.ctl->gone && k->state != KERNEL_ENDING)
        kernel_give_up(k, hung_up);
}

static void kernel_on_end(void *owner, int status, const char *why) {
    struct kernel *k = owner;
    struct err e;
    err_user(&e, "kernel_failed", "the kernel %s%.200s", why ? "could not be started: " : "ended",
             why ? why : "");
    loop_timer_stop(k->live->engine->loop, &k->retry);
    kernel_untell(k);
    kernel_unhear(k);
    k->is_fresh = true;
    k->begun = false;
    k->restarts++;
    live_changed(k->live);
    kernel_move(k, KERNEL_STARTING);
    k->execution_count = 0;
    kernel_fail_queries(k, &e);
    lent_end(k);
    if (k->broken == hung_up && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
        k->broken = NULL; /* it had died before we killed it */
    if (k->running)
        cell_killed(k->running, status, why ? why : k->broken);
    k->broken = NULL;
    if (k->deleted) {
        if (!k->running) /* else see kernel_go_on */
            kernel_forget(k, &e);
        return;
    }
    tell_news(k, KERNEL_DIED);
    if (!why) {
        kernel_start(k);
    } else if (++k->failures < FAIL_MAX) {
        loop_timer_in_ms(k->live->engine->loop, &k->retry, RETRY_MS << k->failures);
    } else if (!k->was_ready) { /* whoever wanted it hears so */
        kernel_forget(k, &e);
    } else { /* the next one who wants something tries again */
        kernel_fail_queue(k, &e);
        tell_ready(k, &e);
        tell_news(k, KERNEL_DEAD);
    }
}

static void kernel_on_go_later(struct deferred *d) {
    kernel_go_on(d->arg);
}

static struct denials *kernel_denied(void *owner) {
    const struct kernel *k = owner;
    return k->running ? &k->running->outcome.denied : NULL;
}

static const struct process_kind kernel_kind = {.on_ready = kernel_on_ready,
                                                .on_resumed = kernel_on_resumed,
                                                .on_frame = kernel_on_frame,
                                                .on_hung_up = kernel_on_hung_up,
                                                .is_heard = kernel_is_heard,
                                                .hear = kernel_hear,
                                                .read = kernel_read,
                                                .on_dying = kernel_on_dying,
                                                .denied = kernel_denied,
                                                .on_end = kernel_on_end};

void kernel_init(struct kernel *k, struct live *l) {
    k->live = l;
    id_make("ker_", k->id, sizeof k->id);
    k->queue_end = &k->queue;
    k->lasting = (struct buf)BUF_INIT;
    k->process = (struct process){.kind = &kernel_kind, .owner = k, .fds = {-1, -1, -1}};
    cgroup_fds_init(&k->process.cgroup);
    k->out[0].kept = k->out[1].kept = (struct buf)BUF_INIT;
    k->out[0].watch.fd = k->out[1].watch.fd = k->out[0].fd = k->out[1].fd = -1;
    k->retry = (struct timer){.fn = kernel_on_retry, .arg = k};
    k->go_later = (struct deferred){.fn = kernel_on_go_later, .arg = k};
    k->free_later = (struct deferred){.fn = kernel_free, .arg = k};
    LIST_APPEND(&l->kernels, k, next);
}

void kernel_begin_first(struct kernel *k) {
    k->is_default = true;
    kernel_move(k, KERNEL_STARTING);
    process_take_first(&k->process, k->live);
    kernel_begin(k);
}

/* ---- one execution after the other ---- */

void kernel_set_running(struct kernel *k, struct cell *c) {
    struct engine_counts *n = &k->live->engine->counts;
    n->cells -= k->running != NULL;
    n->cells += c != NULL;
    k->live->running -= k->running != NULL;
    k->live->running += c != NULL;
    k->running = c;
}

void kernel_go_on(struct kernel *k) {
    if (k->deleted && !k->running && k->process.state == PROCESS_NONE && !k->forgotten) {
        struct err e;
        err_user(&e, "no_such_kernel", "the kernel was deleted");
        kernel_forget(k, &e);
    }
    if (!k->queue || k->running || k->live->paused)
        return;
    if (k->process.state == PROCESS_NONE && !k->retry.place && !k->deleted) {
        kernel_start(k);
        return;
    }
    if (k->state != KERNEL_IDLE)
        return;
    kernel_set_running(k, kernel_take(k));
    kernel_move(k, KERNEL_BUSY);
    cell_begin(k->running);
}

void kernel_on_calm(void *arg, const char *json, size_t len, const struct err *why) {
    struct kernel *k = arg;
    (void)json, (void)len, (void)why;
    if (k->state == KERNEL_BUSY && !k->running)
        kernel_move(k, KERNEL_IDLE);
    loop_defer(k->live->engine->loop, &k->go_later);
}

void kernel_ran(struct kernel *k, bool interrupted) {
    struct err e;
    kernel_set_running(k, NULL);
    lent_back(k);
    live_changed(k->live);
    kernel_hold(k, false);
    /* What was meant for that one must not hit the next one. */
    if (k->state == KERNEL_BUSY && interrupted && !k->forgotten &&
        kernel_query(k, "sync", "", kernel_on_calm, k, &e) == 0)
        return;
    if (k->state == KERNEL_BUSY)
        kernel_move(k, KERNEL_IDLE);
    loop_defer(k->live->engine->loop, &k->go_later);
}
