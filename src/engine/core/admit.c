/* See admit.h. */

#include "engine/core/admit.h"

#include "base/buf.h"
#include "engine/core/budget.h"
#include "engine/core/engine.h"
#include "engine/core/sandbox.h"

#include <inttypes.h>
#include <string.h>

#define DESCRIPTORS_MAX (1u << 16) /* of all processes of a sandbox together */

/* SECURITY: what a process waits for by poll() or select() is an entry in a queue, too, and when
 * the file is ready all entries of its queue are gone through in one interrupt. A sandbox has as
 * many as descriptors, and there is no other bound (init/epolls.c has that of epoll). */
static int check_descriptors(const struct limits *defaults, const struct limits *l, struct err *e) {
    uint64_t usual = (uint64_t)defaults->pids * defaults->open_files;
    uint64_t most = usual > DESCRIPTORS_MAX ? usual : DESCRIPTORS_MAX;
    uint64_t asked = (uint64_t)l->pids * l->open_files;
    if (asked <= most)
        return 0;
    return err_user(e, "limit_too_high",
                    "pids of %u with open_files of %u are %" PRIu64
                    " descriptors, and a sandbox has %" PRIu64
                    " at most: with pids of %u open_files may be %" PRIu64,
                    l->pids, l->open_files, asked, most, l->pids, most / l->pids);
}

uint32_t limits_most_pids(uint32_t open_files) {
    return open_files ? DESCRIPTORS_MAX / open_files : UINT32_MAX;
}

static int limit_too_high(size_t i, uint64_t asked, uint64_t most, struct err *e) {
    AUTO_BUF asks = BUF_INIT;
    AUTO_BUF has = BUF_INIT;
    limits_add_text(&asks, i, asked);
    limits_add_text(&has, i, most);
    return err_user(e, "limit_too_high", "%s of %s is above this engine's maximum of %s",
                    limits_info[i].flag + strlen("--"), asks.data, has.data);
}

int limits_settle(const struct limits *defaults, const struct limits *maxima, unsigned scopes,
                  struct limits *l, struct err *e) {
    for (size_t i = 0; i < LIMITS_; i++) {
        const struct limit_info *info = &limits_info[i];
        if (!(info->scope & scopes))
            continue;
        uint64_t usual = limits_value(defaults, i), most = limits_value(maxima, i);
        uint64_t asked = limits_value(l, i), v = asked ? asked : usual;
        if (most && v > most && v > usual)
            return limit_too_high(i, v, most > usual ? most : usual, e);
        limits_set(l, i, v);
    }
    return (scopes & LIMIT_OF_WHOLE) == LIMIT_OF_WHOLE ? check_descriptors(defaults, l, e) : 0;
}

/* There is a place in the queue, or it can begin at once. */
static int find_place(const struct admission *a, struct err *e) {
    struct profile_pool *p = a->pool;
    bool memory = budget_lets(p->engine, a->limits, a->files_bytes);
    if ((p->ready && p->queue.n == 0 && memory) || p->queue.n < p->engine->config.queue_max)
        return 0;
    err_user(e, p->ready && !memory ? "memory_budget" : "queue_full",
             "%u requests wait already for %s of profile %.*s", p->queue.n,
             p->ready && !memory ? "memory for a sandbox" : "a sandbox",
             (int)strcspn(p->config->name, "+"), p->config->name); /* without "+live" */
    struct queue_item *other = queue_surplus(&p->queue, a->tenant);
    if (!other)
        return -1;
    struct guest *who = other->owner;
    queue_remove(&p->queue, other);
    who->kind->fail(who->owner, e);
    return 0;
}

int admit(struct admission *a, struct err *e) {
    if (limits_settle(a->defaults, &a->maxima, LIMIT_OF_ANY, a->limits, e) < 0 ||
        (a->check && a->check(a, e) < 0))
        return -1;
    struct engine *g = a->pool->engine;
    if (budget_check(g, a->limits, a->inputs, a->ninputs, &a->files_bytes, e) < 0)
        return -1;
    return find_place(a, e);
}
