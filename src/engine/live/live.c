/* Live sandboxes: their birth, life time and end. See live.h.
 *
 * A live sandbox waits for its place as a program does (the same queue, the same budget), in the
 * pool of the profile's live twin. From then on it stays until its time is up, it was idle for too
 * long, or somebody ends it. Why it is gone is remembered for those who ask later (gone.c). */

#include "engine/live/live.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "engine/core/budget.h"
#include "engine/core/memory_watch.h"
#include "engine/core/state.h"
#include "engine/kernel/cell.h"
#include "engine/kernel/kernel.h"
#include "engine/kernel/kernel_talk.h"
#include "engine/live/command.h"
#include "engine/live/cpu_account.h"
#include "engine/live/gone.h"
#include "engine/live/internal.h"
#include "engine/live/journal.h"
#include "engine/live/keep.h"
#include "engine/live/live_admit.h"
#include "engine/live/lives.h"
#include "engine/process/pace.h"
#include "engine/process/process.h"
#include "engine/said/shown.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#define MADE_WITH "+live"

static void live_free(struct deferred *d) {
    struct live *l = d->arg;
    inputs_close(l->engine->crew, l->req.inputs, l->req.ninputs);
    live_request_done(&l->req);
    free(l->profile);
    journal_free(l->journal);
    buf_done(&l->lasting);
    free(l);
}

static const uint8_t live_moves[LIVE_STATES_] = {
    [LIVE_WAITING] = 1 << LIVE_STAGING | 1 << LIVE_RUNNING | 1 << LIVE_ENDED,
    [LIVE_STAGING] = 1 << LIVE_RUNNING | 1 << LIVE_ENDED,
    [LIVE_RUNNING] = 1 << LIVE_ENDED,
};

static void live_move(struct live *l, enum live_state to) {
    state_check("live sandbox", live_moves, l->state, to);
    l->engine->counts.live += to == LIVE_RUNNING;
    l->engine->counts.live -= l->state == LIVE_RUNNING;
    l->state = to;
}

static void live_created_at(struct live *l, double created) {
    lives_leave(l);
    l->created = created;
    lives_join(l);
}

/* ---- its end ---- */

void live_watch(struct live *l, struct live_watcher *w) {
    w->live = l;
    w->at = &l->watchers;
    LIST_PUSH(w->at, w, next);
    if (w->next)
        w->next->at = &w->next;
}

void live_unwatch(struct live_watcher *w) {
    if (!w->live)
        return;
    (void)LIST_POP(w->at, next);
    if (w->next)
        w->next->at = w->at;
    w->live = NULL;
}

static void live_tell_watchers(struct live *l, const struct err *why) {
    while (l->watchers) {
        struct live_watcher *w = l->watchers;
        live_unwatch(w);
        w->on_end(w, why);
    }
}

/* Everybody who has to do with it hears that it ends; then it is only a name. */
static void live_close(struct live *l, const struct err *why) {
    struct engine *g = l->engine;
    enum live_state before = l->state;
    if (before == LIVE_ENDED)
        return;
    live_move(l, LIVE_ENDED);
    loop_timer_stop(g->loop, &l->timer);
    loop_timer_stop(g->loop, &l->write_timer);
    stage_done(&l->stage);
    lives_leave(l);
    commands_ended_with(l);
    kernel_ended_with(l, why);
    processes_ended_with(l);
    cpu_account_end(l);
    pace_end(l);
    kernel_unhear_all(l);
    live_tell_watchers(l, why);
    if (before != LIVE_RUNNING && l->ready)
        l->ready(l->ready_arg, l, why);
    l->sandbox = NULL;
    loop_defer(g->loop, &l->free_later);
}

void live_end(struct live *l, const char *reason, void (*done)(void *arg), void *arg) {
    struct sandbox *s = l->sandbox;
    struct err e, ignored;
    err_user(&e, "sandbox_gone", "the sandbox is gone: %s", reason);
    gone_add(l->engine->lives->gone, l->req.tenant, l->id, reason);
    log_info("live sandbox ended id=%s why=%s", l->id, log_text(reason));
    if (s && l->paused)
        cgroup_fds_freeze(s->cgroup, false, &ignored); /* what is frozen does not die */
    if (s) {
        s->guest = NULL;
        s->on_gone = done;
        s->gone_arg = arg;
    }
    live_close(l, &e);
    if (s)
        sandbox_end(s);
    else if (done)
        done(arg);
}

void live_cancel(struct live *l) {
    l->ready = NULL;
    pool_leave(l->pool, &l->guest);
    live_end(l, "it was called off before it was ready", NULL, NULL);
}

/* ---- its birth ---- */

static void live_fail(struct live *l, const struct err *why) {
    struct sandbox *s = l->sandbox;
    pool_leave(l->pool, &l->guest);
    if (s)
        s->guest = NULL;
    live_close(l, why);
    if (s)
        sandbox_end(s);
}

static void live_on_timer(struct timer *t) {
    struct live *l = t->arg;
    uint64_t now = now_ns();
    struct err e;
    if (l->state == LIVE_WAITING || l->state == LIVE_STAGING) {
        pool_late(l->pool, &l->guest, &e);
        live_fail(l, &e);
    } else if (l->expires_ns && now >= l->expires_ns) {
        live_end(l, "its time was up (ttl_seconds)", NULL, NULL);
    } else if (l->idle_since_ns && now >= l->idle_since_ns + l->req.idle_s * SECOND_NS) {
        live_end(l, "it was idle for too long (idle_seconds)", NULL, NULL);
    } else {
        live_set_timer(l);
    }
}

static void live_on_fail(void *owner, const struct err *why) {
    live_fail(owner, why);
}

static void live_begin(struct live *l) {
    struct kernel *k = xcalloc(1, sizeof *k);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    live_created_at(l, (double)now.tv_sec + (double)now.tv_nsec / 1e9);
    live_move(l, LIVE_RUNNING);
    l->expires_ns = now_ns() + l->req.ttl_s * SECOND_NS;
    l->idle_since_ns = now_ns();
    cgroup_fds_begin(l->sandbox->cgroup);
    budget_staged(l->sandbox);
    cpu_account_begin(l);
    live_set_timer(l);
    gone_expect(l->engine->lives->gone, l->req.tenant, l->id);
    kernel_init(k, l);
    kernel_begin_first(k);
    live_keep(l);
    inputs_close(l->engine->crew, l->req.inputs, l->req.ninputs);
    live_ready_fn *ready = l->ready;
    l->ready = NULL;
    if (ready)
        ready(l->ready_arg, l, NULL);
}

static void live_on_staged(void *arg, const struct err *why) {
    if (why)
        live_fail(arg, why);
    else
        live_begin(arg);
}

static void live_on_assign(void *owner, struct sandbox *s) {
    struct live *l = owner;
    struct err e;
    live_move(l, LIVE_STAGING);
    l->sandbox = s;
    l->stage = (struct stage){.sandbox = s,
                              .limits = &l->req.limits,
                              .network = l->req.network,
                              .tree = l->req.tree ? l->req.tree->id : NULL,
                              .binds = l->req.binds,
                              .nbinds = l->req.nbinds,
                              .inputs = l->req.inputs,
                              .ninputs = l->req.ninputs,
                              .done = live_on_staged,
                              .arg = l};
    int more = stage_begin(&l->stage, &e);
    if (more < 0)
        live_fail(l, &e);
    else if (more == 0)
        live_begin(l);
}

/* ---- from the sandbox ---- */

static void live_on_frame(void *owner, struct wire_in *in) {
    processes_frame(owner, in);
}
static void live_on_hung_up(void *owner) {
    processes_hung_up(owner);
}

static void live_on_answer(void *owner, enum asked what, struct wire_in *in) {
    (void)owner, (void)what, (void)in; /* every question of ours has its own answer */
}

static struct denials *live_denied(void *owner, uint32_t process) {
    return processes_denied(owner, process);
}

/* Init has ended all that is in the sandbox, or, without control groups, the processes that were
 * too many. */
static void live_on_limit(void *owner, enum limit_kind kind) {
    const struct live *l = owner;
    for (struct kernel *k = l->kernels; k; k = k->next) {
        if (k->running)
            outcome_met(&k->running->outcome, kind);
    }
}

static void live_on_exited(void *owner, uint32_t number, int status) {
    processes_exited(owner, number, status);
}

/* Of those that an earlier server left. */
static void live_one_came(struct live *l) {
    if (l->to_come && --l->to_come == 0)
        processes_all_here(l);
}

static void live_on_more(void *owner, const struct w_kernel_made *m, struct wire_in *in,
                         const char *why) {
    processes_made(owner, m, in, why);
    live_one_came(owner);
}

static void live_on_no_more(void *owner, uint32_t number, const char *why) {
    processes_failed(owner, number, why);
    live_one_came(owner);
}

static void live_on_lost(void *owner) {
    struct live *l = owner;
    struct err e, ignored;
    const char *reason = "a process of ours that held it was killed";
    err_user(&e, "sandbox_gone", "the sandbox is gone: %s", reason);
    gone_add(l->engine->lives->gone, l->req.tenant, l->id, reason);
    if (l->paused)
        cgroup_fds_freeze(l->sandbox->cgroup, false,
                          &ignored); /* for who has the control group next */
    live_close(l, &e);
}

static const struct guest_kind live_kind = {
    .assign = live_on_assign,
    .fail = live_on_fail,
    .frame = live_on_frame,
    .hung_up = live_on_hung_up,
    .answer = live_on_answer,
    .denied = live_denied,
    .limit = live_on_limit,
    .exited = live_on_exited,
    .lost = live_on_lost,
    .more = live_on_more,
    .no_more = live_on_no_more,
};

static void live_make_room(void *arg) {
    commands_make_room(arg);
}

/* One cell alone always has room for what its own limits let it print and show. */
static void live_bound_kept(struct live *l) {
    uint64_t most = l->engine->config.maxima.output_bytes, own = l->req.limits.output_bytes;
    l->guest.kept = (struct kept){.engine = l->engine,
                                  .bytes = l->guest.kept.bytes,
                                  .shown = l->guest.kept.shown,
                                  .most = 2 * (most > own ? most : own) + SHOWN_BYTES_MAX,
                                  .make_room = live_make_room,
                                  .arg = l};
}

static struct live *live_make(struct engine *g) {
    struct live *l = xcalloc(1, sizeof *l);
    l->engine = g;
    l->shared = g->lives->shared;
    l->timer = (struct timer){.fn = live_on_timer, .arg = l};
    l->free_later = (struct deferred){.fn = live_free, .arg = l};
    pace_init(l);
    l->guest =
        (struct guest){.kind = &live_kind, .owner = l, .limits = &l->req.limits, .id = l->id};
    live_keep_init(l);
    lives_join(l);
    return l;
}

int live_new(struct engine *g, struct live_request *q, live_ready_fn *fn, void *arg,
             struct live **ret, struct err *e) {
    struct profile_pool *p;
    uint64_t files_bytes = 0;
    if (live_admit(g, q, &p, &files_bytes, e) < 0)
        return -1;
    struct live *l = live_make(g);
    l->pool = p;
    l->profile = q->tree ? xstrdup(q->tree->name)
                         : xstrndup(p->config->name, strlen(p->config->name) - strlen(MADE_WITH));
    l->req = *q;
    *q = (struct live_request){0};
    live_bound_kept(l);
    l->ready = fn;
    l->ready_arg = arg;
    id_make("sbx_", l->id, sizeof l->id);
    l->guest.files_bytes = files_bytes;
    l->guest.tenant = l->req.tenant;
    *ret = l;
    loop_timer_in_ms(g->loop, &l->timer, g->config.queue_ms);
    pool_enter(p, &l->guest, l->req.tenant);
    return 0;
}

/* ---- from an earlier server ---- */

struct live *live_inherit(struct engine *g, struct sandbox *s) {
    struct live *l = live_make(g);
    l->pool = s->pool;
    l->sandbox = s;
    live_move(l, LIVE_RUNNING);
    s->guest = &l->guest;
    return l;
}

void live_inherited(struct live *l, uint32_t processes) {
    struct err ignored;
    live_bound_kept(l);
    live_created_at(l, l->created);
    /* The last server may have died between the freezer and the journal. */
    cgroup_fds_freeze(l->sandbox->cgroup, l->paused, &ignored);
    if (!l->held)
        l->idle_since_ns = now_ns();
    budget_inherit(l->sandbox, &l->guest);
    memory_inherit(l->sandbox);
    cpu_account_begin(l);
    live_set_timer(l);
    l->to_come = processes;
    processes_first_here(l);
    if (processes == 0)
        processes_all_here(l);
    live_changed(l);
}

void live_disown(struct live *l) {
    struct sandbox *s = l->sandbox;
    struct err e;
    err_user(&e, "sandbox_lost", "it could not be taken over");
    s->guest = NULL;
    live_close(l, &e);
    sandbox_end(s);
}

/* ---- for those who use it ---- */

struct sandbox *live_sandbox(const struct live *l) {
    return l->sandbox;
}
