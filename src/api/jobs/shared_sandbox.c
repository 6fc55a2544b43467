/* See shared_sandbox.h. */

#include "api/jobs/shared_sandbox.h"

#include "engine/core/admit.h"

#include <string.h>

#define DEFAULT "default" /* the name of the default profile's */
#define SHARERS 4         /* kernels for which it has memory */

static uint32_t less(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

void shared_fill_single(const struct call *c, const char *profile, uint32_t idle_s,
                        struct live_request *q) {
    const struct config *g = c->api->config;
    q->profile = xstrdup(profile);
    q->metadata = xstrdup("{}");
    q->ttl_s = g->live_ttl_max_s;
    q->idle_s = idle_s;
    q->limits = g->live;
    uint32_t most = less(g->maxima.pids, limits_most_pids(q->limits.open_files));
    if (q->limits.pids < most)
        q->limits.pids = most; /* each kernel is one, and each may start others */
}

/* Room for some kernels that use all they may, and for all to compute at once. */
void shared_fill(const struct call *c, uint32_t idle_s, struct live_request *q) {
    const struct config *g = c->api->config;
    const char *name = strchr(q->alias, '/') + 1;
    uint32_t budget = g->memory_budget_mb ? g->memory_budget_mb / 2 : UINT32_MAX;
    uint32_t most = less(SHARERS * g->live.memory_mb, less(g->maxima.memory_mb, budget));
    shared_fill_single(c, strcmp(name, DEFAULT) == 0 ? "auto" : name, idle_s, q);
    if (q->limits.memory_mb < most)
        q->limits.memory_mb = most;
    q->limits.cpus_percent = g->maxima.cpus_percent;
}

void shared_use(struct call *c, const struct shared_kind *kind, const char *profile,
                alias_fn *then) {
    alias_use(c, kind->kept_as, profile ? profile : DEFAULT, kind->fill, then);
}
