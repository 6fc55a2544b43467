/* See shared_sandbox.h. */

#include "api/jobs/shared_sandbox.h"

#include "api/core/doors.h"
#include "api/jobs/network_field.h"
#include "engine/core/admit.h"

#include <string.h>

#define KEPT_AS "jupyter" /* the alias begins with it; journals hold aliases, so it stays */
#define DEFAULT "default" /* the sandbox of the default profile */
#define SHARERS 4         /* it has memory for so many kernels */

static uint32_t less(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

void shared_fill_single(const struct call *c, const char *profile, struct live_request *q) {
    const struct config *g = c->api->config;
    q->profile = xstrdup(profile);
    q->metadata = xstrdup("{}");
    q->ttl_s = g->live_ttl_max_s;
    q->idle_s = g->shared_idle_s;
    q->limits = g->live;
    uint32_t most = less(g->maxima.pids, limits_most_pids(q->limits.open_files));
    if (q->limits.pids < most)
        q->limits.pids = most; /* a kernel is a process, and may start others */
}

/* Notebooks expect what is refused to be unreachable. */
static int shared_fill_network(struct call *c, struct live_request *q, struct problem *p) {
    const char *allowed = c->api->config->shared_domains;
    if (!*allowed)
        return 0;
    q->network = network_unreachable_of(&c->who, allowed, p);
    return q->network ? 0 : -1;
}

/* Room for some kernels that use all they may, and for all to compute at once. */
static int shared_fill(struct call *c, struct live_request *q, struct problem *p) {
    const struct config *g = c->api->config;
    const char *name = strchr(q->alias, '/') + 1;
    if (strcmp(name, DEFAULT) == 0 && shared_fill_network(c, q, p) < 0)
        return -1;
    uint32_t budget = g->memory_budget_mb ? g->memory_budget_mb / 2 : UINT32_MAX;
    uint32_t most = less(SHARERS * g->live.memory_mb, less(g->maxima.memory_mb, budget));
    shared_fill_single(c, strcmp(name, DEFAULT) == 0 ? "auto" : name, q);
    if (q->limits.memory_mb < most)
        q->limits.memory_mb = most;
    q->limits.cpus_percent = g->maxima.cpus_percent;
    return 0;
}

void shared_use(struct call *c, const char *profile, alias_fn *then) {
    if (call_at_door(c)) {
        struct live *l = call_door_live(c);
        if (l)
            then(c, l);
        return;
    }
    alias_use(c, KEPT_AS, profile ? profile : DEFAULT, shared_fill, then);
}
