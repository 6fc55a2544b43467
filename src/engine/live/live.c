/* Live sandboxes: their birth, life time and end. See live.h.
 *
 * A live sandbox waits for its place as a program does (the same queue, the same budget), in the
 * pool of the profile's live twin. From then on it stays until its time is up, it was idle for too
 * long, or somebody ends it. Why it is gone is remembered for those who ask later (gone.c). */

#include "engine/live/internal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/live/gone.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000ull
#define MAX_ASKED (SANDBOX_MAX_ASKED - 32) /* of others: signals must always find room */
#define MADE_WITH "+live"

void live_request_done(struct live_request *q) {
    free(q->tenant);
    free(q->profile);
    free(q->name);
    free(q->metadata);
    free(q->alias);
    free(q->payer);
    free(q->env);
    for (unsigned i = 0; i < q->ninputs; i++) {
        free(q->inputs[i].path);
        fd_close(&q->inputs[i].fd);
    }
    free(q->inputs);
    *q = (struct live_request){0};
}

static void free_now(struct deferred *d) {
    struct live *l = d->arg;
    live_request_done(&l->req);
    free(l->profile);
    journal_free(l->journal);
    free(l);
}

const char *live_id(const struct live *l) {
    return l->id;
}
const char *live_metadata(const struct live *l) {
    return l->req.metadata;
}
const char *live_alias(const struct live *l) {
    return l->req.alias;
}
const char *live_profile(const struct live *l) {
    return l->profile;
}
const char *live_python(const struct live *l) {
    return l->pool && l->pool->state == PROFILE_READY ? l->pool->what : "";
}

const struct config_limits *live_limits(const struct live *l) {
    return &l->req.limits;
}
bool live_is_paused(const struct live *l) {
    return l->paused;
}

/* ---- its place among the others ---- */

static void unlink_live(struct live *l) {
    for (struct live **at = &l->engine->lives; *at; at = &(*at)->next) {
        if (*at == l) {
            *at = l->next;
            break;
        }
    }
}

/* The oldest is the first; before it those that were not made yet. */
static void join(struct live *l) {
    struct live **at = &l->engine->lives;
    while (*at && (*at)->created <= l->created)
        at = &(*at)->next;
    l->next = *at;
    *at = l;
}

static void created_at(struct live *l, double created) {
    unlink_live(l);
    l->created = created;
    join(l);
}

/* ---- its end ---- */

void live_watch(struct live *l, struct live_watcher *w) {
    w->live = l;
    w->next = l->watchers;
    l->watchers = w;
}

void live_unwatch(struct live_watcher *w) {
    if (!w->live)
        return;
    for (struct live_watcher **at = &w->live->watchers; *at; at = &(*at)->next) {
        if (*at == w) {
            *at = w->next;
            break;
        }
    }
    w->live = NULL;
}

static void tell_watchers(struct live *l, const struct err *why) {
    while (l->watchers) {
        struct live_watcher *w = l->watchers;
        live_unwatch(w);
        w->on_end(w, why);
    }
}

/* Everybody who has to do with it hears that it ends; then it is only a name. */
static void close_live(struct live *l, const struct err *why) {
    struct engine *g = l->engine;
    enum live_state before = l->state;
    if (before == LIVE_ENDED)
        return;
    l->state = LIVE_ENDED;
    loop_timer_stop(g->loop, &l->timer);
    stage_done(&l->stage);
    unlink_live(l);
    commands_ended_with(l);
    kernel_ended_with(l, why);
    processes_ended_with(l);
    cpu_account_end(l);
    pace_end(l);
    kernel_unhear_all(l);
    tell_watchers(l, why);
    if (before != LIVE_RUNNING && l->ready)
        l->ready(l->ready_arg, l, why);
    l->sandbox = NULL;
    loop_defer(g->loop, &l->free_later);
}

void live_end(struct live *l, const char *reason, void (*done)(void *arg), void *arg) {
    struct sandbox *s = l->sandbox;
    struct err e, ignored;
    err_user(&e, "sandbox_gone", "the sandbox is gone: %s", reason);
    gone_add(l->engine->gone, l->req.tenant, l->id, reason);
    log_info("live sandbox ended id=%s why=%s", l->id, log_text(reason));
    if (s && l->paused)
        cgroup_fds_freeze(s->cgroup, false, &ignored); /* what is frozen does not die */
    if (s) {
        s->guest = NULL;
        s->on_gone = done;
        s->gone_arg = arg;
    }
    close_live(l, &e);
    if (s)
        sandbox_end(s);
    else if (done)
        done(arg);
}

void live_cancel(struct live *l) {
    l->ready = NULL;
    if (l->state == LIVE_WAITING) {
        queue_remove(&l->pool->queue, &l->guest.place);
        pool_trim(l->pool);
    }
    live_end(l, "it was called off before it was ready", NULL, NULL);
}

/* ---- how long it lives ---- */

static void set_timer(struct live *l) {
    uint64_t at = l->expires_ns;
    if (l->idle_since_ns && l->req.idle_s) {
        uint64_t idle = l->idle_since_ns + l->req.idle_s * SECOND_NS;
        at = !at || idle < at ? idle : at;
    }
    if (at)
        loop_timer(l->engine->loop, &l->timer, at);
    else
        loop_timer_stop(l->engine->loop, &l->timer);
}

bool live_is_held(const struct live *l) {
    return l->held > 0;
}

void live_hold(struct live *l) {
    l->held++;
    l->idle_since_ns = 0;
}

void live_release(struct live *l) {
    if (--l->held == 0) {
        l->idle_since_ns = now_ns();
        if (l->state == LIVE_RUNNING)
            set_timer(l);
    }
}

/* ---- its birth ---- */

static void live_fail(struct live *l, const struct err *why) {
    struct sandbox *s = l->sandbox;
    if (l->state == LIVE_WAITING && l->guest.place.lane)
        queue_remove(&l->pool->queue, &l->guest.place);
    if (s)
        s->guest = NULL;
    close_live(l, why);
    if (s)
        sandbox_end(s);
}

static void on_timer(struct timer *t) {
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
        set_timer(l);
    }
}

static void fail(void *owner, const struct err *why) {
    live_fail(owner, why);
}

static void begin(struct live *l) {
    struct kernel *k = xcalloc(1, sizeof *k);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    created_at(l, (double)now.tv_sec + (double)now.tv_nsec / 1e9);
    l->state = LIVE_RUNNING;
    l->expires_ns = now_ns() + l->req.ttl_s * SECOND_NS;
    l->idle_since_ns = now_ns();
    cgroup_fds_begin(l->sandbox->cgroup);
    budget_staged(l->sandbox);
    cpu_account_begin(l);
    set_timer(l);
    gone_expect(l->engine->gone, l->req.tenant, l->id);
    kernel_init(k, l);
    kernel_begin_first(k);
    live_keep(l);
    for (unsigned i = 0; i < l->req.ninputs; i++)
        fd_close(&l->req.inputs[i].fd);
    live_ready_fn *ready = l->ready;
    l->ready = NULL;
    if (ready)
        ready(l->ready_arg, l, NULL);
}

static void on_staged(void *arg, const struct err *why) {
    if (why)
        live_fail(arg, why);
    else
        begin(arg);
}

static void assign(void *owner, struct sandbox *s) {
    struct live *l = owner;
    struct err e;
    l->state = LIVE_STAGING;
    l->sandbox = s;
    l->stage = (struct stage){.sandbox = s,
                              .limits = &l->req.limits,
                              .inputs = l->req.inputs,
                              .ninputs = l->req.ninputs,
                              .done = on_staged,
                              .arg = l};
    int more = stage_begin(&l->stage, &e);
    if (more < 0)
        live_fail(l, &e);
    else if (more == 0)
        begin(l);
}

/* ---- from the sandbox ---- */

static void frame(void *owner, struct wire_in *in) {
    processes_frame(owner, in);
}
static void hung_up(void *owner) {
    processes_hung_up(owner);
}

static void answer(void *owner, enum asked what, struct wire_in *in) {
    (void)owner, (void)what, (void)in; /* every question of ours has its own answer */
}

static struct denials *denied(void *owner, uint32_t process) {
    return processes_denied(owner, process);
}

/* Without control groups: init has ended all that is in the sandbox, or the processes that were too
 * many. */
static void limit(void *owner, enum limit_kind kind) {
    const struct live *l = owner;
    for (struct kernel *k = l->kernels; k; k = k->next) {
        if (k->running)
            cell_limit(k->running, kind);
    }
}

static void exited(void *owner, uint32_t number, int status) {
    processes_exited(owner, number, status);
}

static void more(void *owner, uint32_t number, struct wire_in *in, const char *why) {
    struct live *l = owner;
    if (why)
        processes_failed(l, number, why);
    else
        processes_made(l, number, in);
    if (l->to_come && --l->to_come == 0)
        processes_all_here(l);
}

static void lost(void *owner) {
    struct live *l = owner;
    struct err e, ignored;
    const char *reason = "a process of ours that held it was killed";
    err_user(&e, "sandbox_gone", "the sandbox is gone: %s", reason);
    gone_add(l->engine->gone, l->req.tenant, l->id, reason);
    if (l->paused)
        cgroup_fds_freeze(l->sandbox->cgroup, false,
                          &ignored); /* for who has the control group next */
    close_live(l, &e);
}

static const struct guest_kind live_kind = {
    .assign = assign,
    .fail = fail,
    .frame = frame,
    .hung_up = hung_up,
    .answer = answer,
    .denied = denied,
    .limit = limit,
    .exited = exited,
    .lost = lost,
    .more = more,
};

/* ---- who may have one ---- */

static unsigned count_words(const char *text) {
    unsigned n = 0;
    for (; *text; text++)
        n += *text != ' ' && (text[1] == ' ' || text[1] == '\0');
    return n;
}

/* auto: the one that has the most in it. */
static const char *choose_auto(struct engine *g) {
    const char *best = NULL;
    unsigned most = 0;
    for (unsigned i = 0; i < g->config.nprofiles; i++) {
        const struct profile_pool *p = &g->pools[i];
        const struct profile_pool *twin = engine_live_pool(g, p->config->name);
        unsigned n = count_words(p->modules) + 1;
        if (twin && twin->state != PROFILE_BROKEN && n > most) {
            most = n;
            best = p->config->name;
        }
    }
    return best;
}

static bool is_named(const struct engine *g, const char *name) {
    unsigned i = 0;
    while (i < g->config.nprofiles && strcmp(g->config.profiles[i].name, name) != 0)
        i++;
    return i < g->config.nprofiles && !g->config.profiles[i].live && !g->config.profiles[i].removed;
}

static int choose_pool(struct engine *g, const struct live_request *q, struct profile_pool **ret,
                       struct err *e) {
    bool is_auto = !q->profile || !*q->profile || strcmp(q->profile, "auto") == 0;
    const char *name = is_auto ? choose_auto(g) : q->profile;
    struct profile_pool *p = name ? engine_live_pool(g, name) : NULL;
    *ret = p;
    if (!p && (is_auto || is_named(g, name)))
        return err_user(e, "profile_broken",
                        "live sandboxes are switched off, or have no profile "
                        "that works (setting live)");
    if (!p)
        return err_user(e, "unknown_profile", "there is no profile \"%.40s\" for live sandboxes",
                        name);
    if (p->state == PROFILE_BROKEN)
        return err_user(e, "profile_broken", "profile %s cannot be live: %.300s", name, p->what);
    return 0;
}

static int settle_time(struct engine *g, struct live_request *q, struct err *e) {
    uint32_t most = g->config.live_ttl_max_s;
    if (q->ttl_s == 0)
        q->ttl_s = g->config.live_ttl_s;
    if (q->idle_s == 0)
        q->idle_s = g->config.live_idle_s;
    if (most && q->ttl_s > most && !q->own_bounds)
        return err_user(e, "limit_too_high",
                        "ttl_seconds of %u is above this engine's maximum of %u", q->ttl_s, most);
    return 0;
}

static int check_quota(struct engine *g, const struct live_request *q, struct err *e) {
    unsigned n = 0, own = q->most_of_tenant, all = g->config.live_per_tenant;
    unsigned most = own && all ? (own < all ? own : all) : own + all;
    for (const struct live *l = g->lives; l; l = l->next)
        n += strcmp(l->req.tenant, q->tenant) == 0;
    if (most && n >= most)
        return err_user(e, "too_many_sandboxes",
                        "%u live sandboxes are there already, which is "
                        "as many as may be",
                        n);
    return 0;
}

static int admit(struct engine *g, struct live_request *q, struct profile_pool **ret,
                 uint64_t *ret_files, struct err *e) {
    if (choose_pool(g, q, ret, e) < 0 || check_quota(g, q, e) < 0 || settle_time(g, q, e) < 0 ||
        limits_settle(&g->config.live, &g->config.maxima, &q->limits, e) < 0)
        return -1;
    if (budget_check(g, &q->limits, q->inputs, q->ninputs, ret_files, e) < 0)
        return -1;
    return admit_place(*ret, &q->limits, *ret_files, q->tenant, e);
}

static struct live *make(struct engine *g) {
    struct live *l = xcalloc(1, sizeof *l);
    l->engine = g;
    l->timer = (struct timer){.fn = on_timer, .arg = l};
    l->free_later = (struct deferred){.fn = free_now, .arg = l};
    pace_init(l);
    l->guest = (struct guest){.kind = &live_kind, .owner = l, .limits = &l->req.limits};
    l->guest.place.owner = &l->guest;
    live_keep_init(l);
    join(l);
    return l;
}

int live_new(struct engine *g, struct live_request *q, live_ready_fn *fn, void *arg,
             struct live **ret, struct err *e) {
    struct profile_pool *p;
    uint64_t files_bytes = 0;
    if (admit(g, q, &p, &files_bytes, e) < 0)
        return -1;
    struct live *l = make(g);
    l->pool = p;
    l->profile = xstrndup(p->config->name, strlen(p->config->name) - strlen(MADE_WITH));
    l->req = *q;
    *q = (struct live_request){0};
    l->ready = fn;
    l->ready_arg = arg;
    id_make("sbx_", l->id, sizeof l->id);
    l->guest.files_bytes = files_bytes;
    *ret = l;
    queue_add(&p->queue, &l->guest.place, l->req.tenant);
    loop_timer(g->loop, &l->timer, now_ns() + (uint64_t)g->config.queue_ms * 1000000u);
    pool_dispatch(p);
    return 0;
}

/* ---- from an earlier server ---- */

struct live *live_inherit(struct engine *g, struct sandbox *s) {
    struct live *l = make(g);
    l->pool = s->pool;
    l->sandbox = s;
    l->state = LIVE_RUNNING;
    s->guest = &l->guest;
    return l;
}

void live_inherited(struct live *l, uint32_t processes) {
    struct err ignored;
    created_at(l, l->created);
    /* The last server may have died between the freezer and the journal. */
    cgroup_fds_freeze(l->sandbox->cgroup, l->paused, &ignored);
    if (!l->held)
        l->idle_since_ns = now_ns();
    budget_inherit(l->sandbox, &l->guest);
    memory_watch(l->sandbox);
    cpu_account_begin(l);
    set_timer(l);
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
    close_live(l, &e);
    sandbox_end(s);
}

/* ---- those that are there ---- */

struct live *live_find(struct engine *g, const char *tenant, const char *id, struct err *e) {
    for (struct live *l = g->lives; l; l = l->next) {
        if (l->state == LIVE_RUNNING && strcmp(l->id, id) == 0 &&
            strcmp(l->req.tenant, tenant) == 0)
            return l;
    }
    const char *reason = gone_find(g->gone, tenant, id);
    if (reason)
        err_user(e, "sandbox_gone", "the sandbox is gone: %s", reason);
    else
        err_user(e, "no_such_sandbox", "there is no sandbox %.60s", id);
    return NULL;
}

bool live_name_taken(const struct engine *g, const char *tenant, const char *name,
                     const struct live *except) {
    for (const struct live *l = g->lives; l; l = l->next) {
        if (l != except && l->state != LIVE_ENDED && l->req.name &&
            strcmp(l->req.name, name) == 0 && strcmp(l->req.tenant, tenant) == 0)
            return true;
    }
    return false;
}

unsigned live_count(const struct engine *g) {
    unsigned n = 0;
    for (const struct live *l = g->lives; l; l = l->next)
        n += l->state == LIVE_RUNNING;
    return n;
}

unsigned live_running(const struct engine *g) {
    unsigned n = 0;
    for (const struct live *l = g->lives; l; l = l->next)
        for (const struct kernel *k = l->kernels; k; k = k->next)
            n += k->running != NULL;
    return n;
}

struct live *live_next(struct engine *g, const char *tenant, const struct live *l) {
    struct live *next = l ? l->next : g->lives;
    while (next &&
           (next->state != LIVE_RUNNING || (tenant && strcmp(next->req.tenant, tenant) != 0)))
        next = next->next;
    return next;
}

bool live_ask(struct live *l, const struct wire_out *o, void (*fn)(void *arg, struct wire_in *in),
              void *arg) {
    if (!l->sandbox || l->sandbox->nasked >= MAX_ASKED)
        return false;
    return sandbox_ask_for(l->sandbox, o, fn, arg);
}

void live_unask(struct live *l, const void *arg) {
    if (l->sandbox)
        sandbox_unask(l->sandbox, arg);
}

int live_pause(struct live *l, bool pause, struct err *e) {
    if (l->paused == pause)
        return 0;
    if (!cgroup_fds_there(l->sandbox->cgroup))
        return err_user(e, "cannot_pause", "this machine has no freezer (see cloche doctor)");
    if (cgroup_fds_freeze(l->sandbox->cgroup, pause, e) < 0)
        return -1;
    l->paused = pause;
    live_changed(l);
    commands_pause(l, pause);
    for (struct kernel *k = l->kernels; k; k = k->next) {
        if (k->running)
            cell_pause(k->running, pause);
        else if (!pause)
            kernel_go_on(k);
    }
    return 0;
}

static void nobody(void *arg, struct wire_in *in) {
    (void)arg, (void)in;
}

/* The kernel would refuse it, or kill for it, after it has tried for long to find some to spare. */
static int check_memory(const struct live *l, const struct config_limits *next, struct err *e) {
    uint64_t used = cgroup_fds_memory(l->sandbox->cgroup);
    if (next->memory_mb >= l->req.limits.memory_mb || used <= config_group_bytes(next))
        return 0;
    return err_user(e, "bad_value",
                    "memory_mb of %u is too low: the sandbox uses %llu MB; delete files or "
                    "restart kernels first",
                    next->memory_mb, (unsigned long long)(used >> 20));
}

/* Of a disk that is fuller than that the kernel leaves the size as it is. */
static int check_disk(const struct live *l, const struct config_limits *next, struct err *e) {
    uint64_t used = sandbox_disk_bytes(l->sandbox);
    if (next->disk_mb >= l->req.limits.disk_mb || used <= (uint64_t)next->disk_mb << 20)
        return 0;
    return err_user(e, "bad_value",
                    "disk_mb of %u is too low: the sandbox's files have %llu MB; delete some first",
                    next->disk_mb, (unsigned long long)((used + (1u << 20) - 1) >> 20));
}

/* v1 refuses a group less than one below it has. */
static int lower_kernels(struct live *l, const struct config_limits *next, struct err *e) {
    for (struct kernel *k = l->kernels; k; k = k->next) {
        if (group_lower(&k->process, next, e) < 0)
            return err_wrap(e, "kernel %s", k->id);
    }
    return 0;
}

static int change_limits(struct live *l, const struct config_limits *want, struct err *e) {
    struct config_limits next = *want;
    if (limits_settle(&l->req.limits, &l->engine->config.maxima, &next, e) < 0 ||
        check_memory(l, &next, e) < 0 || check_disk(l, &next, e) < 0 ||
        lower_kernels(l, &next, e) < 0 || stage_cgroup(l->sandbox, &next, true, e) < 0)
        return -1;
    const struct config_limits *old = &l->req.limits;
    if (next.disk_mb != old->disk_mb || next.memory_mb != old->memory_mb ||
        next.pids != old->pids) {
        struct wire_out o;
        wire_begin(&o, WIRE_I_LIMITS);
        wire_put_u32(&o, next.disk_mb);
        wire_put_u32(&o, next.memory_mb);
        wire_put_u32(&o, next.pids);
        live_ask(l, &o, nobody, l);
    }
    l->req.limits = next;
    memory_watch(l->sandbox);
    return 0;
}

int live_change(struct live *l, const struct live_change *c, struct err *e) {
    struct live_request q = {.ttl_s = c->ttl_s, .idle_s = c->idle_s};
    if (settle_time(l->engine, &q, e) < 0 || (c->limits && change_limits(l, c->limits, e) < 0))
        return -1;
    if (c->metadata) {
        free(l->req.metadata);
        l->req.metadata = xstrdup(c->metadata);
    }
    if (c->name) {
        free(l->req.name);
        l->req.name = xstrdup(c->name);
    }
    if (c->ttl_s) {
        l->req.ttl_s = c->ttl_s;
        l->expires_ns = now_ns() + c->ttl_s * SECOND_NS;
    }
    if (c->idle_s)
        l->req.idle_s = c->idle_s;
    set_timer(l);
    live_changed(l);
    return 0;
}

/* ---- for those who look at it ---- */

static double unix_time(uint64_t at_ns) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double left = ((double)at_ns - (double)now_ns()) / 1e9;
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9 + left;
}

double live_created(const struct live *l) {
    return l->created;
}

double live_expires(const struct live *l) {
    return unix_time(l->expires_ns);
}

static void put_usage(struct jw *j, struct live *l) {
    struct cgroup_fds *k = l->sandbox->cgroup;
    struct statfs f;
    uint64_t peak = cgroup_fds_memory_peak(k);
    if (peak > l->memory_peak)
        l->memory_peak = peak;
    jw_key(j, "usage");
    jw_object(j);
    jw_key_uint(j, "memory_bytes", cgroup_fds_memory(k));
    jw_key_uint(j, "memory_peak_bytes", l->memory_peak);
    jw_key_real(j, "cpu_ms", (double)pace_cpu_us(l) / 1e3);
    jw_key_uint(j, "processes", cgroup_fds_there(k) ? cgroup_fds_pids(k) : l->sandbox->tasks);
    if (fstatfs(l->sandbox->fds[SANDBOX_WORKSPACE], &f) == 0) {
        jw_key_uint(j, "disk_bytes", sandbox_disk_bytes(l->sandbox));
        jw_key_uint(j, "files", f.f_files - f.f_ffree);
    }
    jw_object_end(j);
}

uint64_t live_room(const struct live *l) {
    struct statfs f;
    if (!l->sandbox || fstatfs(l->sandbox->fds[SANDBOX_WORKSPACE], &f) < 0)
        return 0;
    return (uint64_t)f.f_bfree * (uint64_t)f.f_bsize;
}

uint64_t live_room_files(const struct live *l) {
    struct statfs f;
    if (!l->sandbox || fstatfs(l->sandbox->fds[SANDBOX_WORKSPACE], &f) < 0)
        return 0;
    return f.f_ffree;
}

int live_fits(const struct live *l, uint64_t bytes, struct err *e) {
    return budget_fits(l->engine, bytes, e);
}

int live_write(struct live *l, int fd, const struct live_piece *p, struct err *e) {
    const char *data = p->data;
    if (budget_write(l->sandbox, p->len, e) < 0)
        return -1;
    for (size_t done = 0; done < p->len;) {
        ssize_t n = pwrite(fd, data + done, p->len - done, (off_t)(p->at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "write a file of the sandbox");
        done += (size_t)n;
    }
    return 0;
}

static void put_kernels(struct jw *j, struct live *l) {
    jw_key(j, "kernels");
    jw_array(j);
    for (struct kernel *k = kernel_next(l, NULL); k; k = kernel_next(l, k)) {
        AUTO_BUF json = BUF_INIT;
        kernel_json(k, &json);
        jw_raw(j, json.data, json.len);
    }
    jw_array_end(j);
}

void live_json(struct live *l, struct buf *to) {
    struct jw j = JW_INIT(to);
    bool idles = l->idle_since_ns && l->req.idle_s;
    jw_object(&j);
    jw_key_str(&j, "id", l->id);
    jw_key_str(&j, "name", l->req.name);
    jw_key_str(&j, "state", l->paused ? "paused" : "running");
    jw_key_str(&j, "profile", l->profile);
    jw_key(&j, "metadata");
    jw_raw(&j, l->req.metadata, strlen(l->req.metadata));
    jw_key_real(&j, "created", l->created);
    jw_key_real(&j, "expires", unix_time(l->expires_ns));
    jw_key_uint(&j, "ttl_seconds", l->req.ttl_s);
    jw_key_uint(&j, "idle_seconds", l->req.idle_s);
    if (idles)
        jw_key_real(&j, "idle_expires", unix_time(l->idle_since_ns + l->req.idle_s * SECOND_NS));
    else
        jw_key_null(&j, "idle_expires");
    about_put_limits(&j, "limits", &l->req.limits);
    put_kernels(&j, l);
    put_usage(&j, l);
    jw_key_str(&j, "network", "none");
    jw_key_uint(&j, "executions", l->executions);
    jw_object_end(&j);
}
