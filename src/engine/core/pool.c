/* The heart of the engine: one pool of ready sandboxes and one queue of waiting guests per profile.
 *
 * A guest (a program, or a live sandbox) takes the oldest ready sandbox; where none is ready it
 * waits (queue.h says in what order), and sandboxes are asked for: as many as the pool wants to
 * hold plus one for each that waits, but never more than the operator allows to be alive. Where
 * some are ready and runs wait all the same, they wait for memory (budget.c), and no more are asked
 * for. Profiles take turns in getting the places that become free. A pool that gave one away is
 * refilled when that run is over, or a moment later: making the next sandbox is not to compete with
 * a program that is over sooner than that. */

#include "engine/core/pool.h"

#include "base/buf.h"
#include "base/list.h"
#include "base/log.h"
#include "engine/core/budget.h"
#include "engine/core/engine.h"
#include "engine/core/memory_watch.h"
#include "engine/core/sandbox.h"
#include "wire/codec.h"

#include <stdio.h>
#include <string.h>

#define MAX_FAILURES 5
#define RETRY_MS     100u
#define MOMENT_MS    3
#define LOOK_MS      250 /* for memory that was given back */

static void ask_for_one(struct profile_pool *p) {
    struct wire_out o;
    w_make_put(&o, &(struct w_make){.profile = p->index});
    chan_send(&p->engine->warden, &o);
    p->making++;
}

static unsigned room(const struct engine *g) {
    unsigned asked = 0;
    for (unsigned i = 0; i < g->config.nprofiles; i++)
        asked += g->pools[i].making;
    for (const struct sandbox *s = g->sandboxes; s; s = s->next)
        asked += s->state != SANDBOX_STARTING; /* those are counted as `making` */
    return asked < g->config.max_sandboxes ? g->config.max_sandboxes - asked : 0;
}

/* Two per core at a time: more would only get in each other's way. While the interpreter starts,
 * one is made ready for its first fork, and the cores are left to it. */
static void want(struct profile_pool *p, unsigned total) {
    if (p->state == PROFILE_BROKEN || p->retry.place ||
        (p->config->live && p->state != PROFILE_READY)) /* its nursery may have to wait */
        return;
    unsigned most = p->state == PROFILE_READY ? p->engine->max_making : 1;
    unsigned free_places = room(p->engine);
    while (p->nready + p->making < total && p->making < most && free_places-- > 0)
        ask_for_one(p);
}

/* Ready sandboxes must not take the places that a program of another profile waits for. */
static bool others_wait(const struct profile_pool *p) {
    for (unsigned i = 0; i < p->engine->config.nprofiles; i++) {
        const struct profile_pool *other = &p->engine->pools[i];
        if (other != p && other->queue.n && !other->ready)
            return true;
    }
    return false;
}

void pool_refill(struct profile_pool *p) {
    loop_timer_stop(p->engine->loop, &p->refill);
    want(p, (p->ready ? 0 : p->queue.n) + (others_wait(p) ? 0 : p->config->pool));
}

static struct sandbox *take(struct profile_pool *p) {
    p->nready--;
    return LIST_POP(&p->ready, next_ready);
}

void pool_forget(struct sandbox *s) {
    if (LIST_REMOVE(&s->pool->ready, s, next_ready))
        s->pool->nready--;
}

static void trim(struct profile_pool *p) {
    while (p->nready > p->queue.n + p->config->pool)
        sandbox_end(p->ready);
}

static struct guest *next_waiting(struct profile_pool *p) {
    return queue_take(&p->queue)->owner;
}

/* Whether the one whose turn it is can begin. Nobody overtakes it for being smaller, for it would
 * wait for ever then; but a tenant that wants more than an equal share waits for a round in which
 * there is room, and keeps nobody waiting. */
static bool may_begin(struct profile_pool *p) {
    for (unsigned n = p->ready ? p->queue.tenants : 0; n > 0; n--) {
        const struct guest *who = queue_first(&p->queue)->owner;
        if (budget_lets(p->engine, who->limits, who->files_bytes))
            return true;
        if (!budget_is_greedy(p->engine, who, p->queue.tenants))
            break;
        queue_pass(&p->queue);
    }
    if (!p->queue.n || !p->ready)
        return false;
    /* What live sandboxes give back, nobody is told of. */
    if (!p->engine->look_again.place)
        loop_timer_in_ms(p->engine->loop, &p->engine->look_again, LOOK_MS);
    return false;
}

/* A place that another profile's ready sandbox holds is given up for a run that waits. */
static void make_room(struct profile_pool *p) {
    struct engine *g = p->engine;
    for (unsigned i = 0; i < g->config.nprofiles; i++) {
        struct profile_pool *other = &g->pools[i];
        if (other != p && other->ready && !other->queue.n) {
            sandbox_end(other->ready);
            return;
        }
    }
}

void pool_dispatch(struct profile_pool *p) {
    bool given = false;
    while (may_begin(p)) {
        struct guest *who = next_waiting(p);
        struct sandbox *s = take(p);
        sandbox_move(s, SANDBOX_BUSY);
        s->guest = who;
        budget_take(s, who);
        memory_watch(s);
        who->kind->assign(who->owner, s);
        given = true;
    }
    trim(p);
    if (p->queue.n && !p->ready) {
        want(p, p->queue.n);
        if (p->making == 0 && room(p->engine) == 0)
            make_room(p);
    } else if (!p->refill.place && given) {
        loop_timer_in_ms(p->engine->loop, &p->refill, MOMENT_MS);
    } else if (!p->refill.place) {
        pool_refill(p);
    }
}

void pool_enter(struct profile_pool *p, struct guest *who, const char *tenant) {
    who->place.owner = who;
    queue_add(&p->queue, &who->place, tenant);
    pool_dispatch(p);
}

void pool_leave(struct profile_pool *p, struct guest *who) {
    if (!who->place.lane)
        return;
    queue_remove(&p->queue, &who->place);
    trim(p);
}

void pool_late(const struct profile_pool *p, const struct guest *who, struct err *e) {
    struct engine *g = p->engine;
    const char *profile = p->config->name;
    uint32_t ms = g->config.queue_ms;
    if (p->ready && !budget_lets(g, who->limits, who->files_bytes))
        err_user(e, "memory_budget", "the machine had no memory for it within %u ms", ms);
    else if (p->state == PROFILE_STARTING)
        err_user(e, "queue_timeout", "profile %s is still starting, and was not ready within %u ms",
                 profile, ms);
    else if (room(g) == 0)
        err_user(e, "queue_timeout",
                 "all %u sandboxes that there may be (--max-sandboxes) are in use, and none of "
                 "profile %s was free within %u ms",
                 g->config.max_sandboxes, profile, ms);
    else
        err_user(e, "queue_timeout", "no sandbox of profile %s was free within %u ms%s%s", profile,
                 ms, *p->last_failure && p->failures ? ": " : "",
                 p->failures ? p->last_failure : "");
}

void pool_freed(struct engine *g) {
    unsigned n = g->config.nprofiles;
    g->turn = (g->turn + 1) % n;
    for (int waiting = 1; waiting >= 0; waiting--) {
        for (unsigned i = 0; i < n; i++) {
            struct profile_pool *p = &g->pools[(g->turn + i) % n];
            if ((p->queue.n > 0) == waiting)
                pool_dispatch(p);
        }
    }
}

static void dispatch_waiting(struct engine *g) {
    for (unsigned i = 0; i < g->config.nprofiles; i++) {
        if (g->pools[i].queue.n && !g->pools[i].ready)
            pool_dispatch(&g->pools[i]);
    }
}

void pool_ready(struct sandbox *s) {
    struct profile_pool *p = s->pool;
    if (p->making)
        p->making--;
    p->failures = 0;
    LIST_APPEND(&p->ready, s, next_ready);
    p->nready++;
    pool_dispatch(p);
    if (p->ready && others_wait(p)) /* it may have the place that another one waits for */
        dispatch_waiting(p->engine);
}

static void refuse_all(struct profile_pool *p, const char *kind, const char *why) {
    struct err e;
    err_user(&e, kind, "profile %s: %s", p->config->name, why);
    while (p->queue.n) {
        struct guest *who = next_waiting(p);
        who->kind->fail(who->owner, &e);
    }
}

void pool_failed(struct profile_pool *p, const char *why) {
    if (p->making)
        p->making--;
    snprintf(p->last_failure, sizeof p->last_failure, "%s", why);
    if (p->state == PROFILE_BROKEN)
        return; /* it was said why */
    if (p->retry.place)
        return; /* one death takes all in the making with it: that is one failure, not many */
    unsigned n = ++p->failures;
    if ((n & (n - 1)) == 0) /* the 1st, 2nd, 4th, 8th … */
        log_warn("sandbox could not be made profile=%s times=%u why=%s", p->config->name, n,
                 log_text(why));
    if (n >= MAX_FAILURES && p->state == PROFILE_READY)
        refuse_all(p, "no_sandbox", why);
    loop_timer_in_ms(p->engine->loop, &p->retry,
                     RETRY_MS << (n / MAX_FAILURES > 5 ? 5 : n / MAX_FAILURES));
}

static void pool_on_retry(struct timer *t) {
    pool_dispatch(t->arg);
}

static void pool_on_refill(struct timer *t) {
    pool_refill(t->arg);
}

void pool_profile(struct engine *g, struct wire_in *in) {
    struct w_profile m;
    struct err e;
    if (w_profile_get(in, &m, &e) < 0 || m.profile >= g->config.nprofiles)
        return;
    struct profile_pool *p = &g->pools[m.profile];
    p->state = (enum profile_state)m.state;
    snprintf(p->what, sizeof p->what, "%s", m.what);
    if (*m.modules)
        snprintf(p->modules, sizeof p->modules, "%s", m.modules);
    if (p->state == PROFILE_BROKEN) {
        p->making = 0;
        refuse_all(p, "profile_broken", m.what);
    } else {
        pool_dispatch(p);
    }
}

void pool_init(struct engine *g, unsigned i) {
    struct profile_pool *p = &g->pools[i];
    p->engine = g;
    p->config = &g->config.profiles[i];
    p->index = i;
    p->retry = (struct timer){.fn = pool_on_retry, .arg = p};
    p->refill = (struct timer){.fn = pool_on_refill, .arg = p};
    AUTO_BUF names = BUF_INIT; /* until the zygote tells */
    for (unsigned k = 0; k < p->config->preload.n; k++)
        buf_addf(&names, "%s ", p->config->preload.items[k]);
    snprintf(p->modules, sizeof p->modules, "%s", names.data);
}

const struct profile_pool *pool_live_at(const struct engine *g, unsigned profile) {
    unsigned twin = config_twin(&g->config, profile);
    bool there = twin < g->config.nprofiles && !g->config.profiles[twin].removed;
    return there ? &g->pools[twin] : NULL;
}

struct profile_pool *pool_live(struct engine *g, const char *name) {
    for (unsigned i = 0; i < g->config.nprofiles; i++)
        if (!g->config.profiles[i].live && strcmp(g->config.profiles[i].name, name) == 0)
            return (struct profile_pool *)pool_live_at(g, i);
    return NULL;
}
