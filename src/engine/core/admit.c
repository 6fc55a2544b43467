/* See admit.h. */

#include "engine/core/admit.h"

#include "engine/core/budget.h"
#include "engine/core/engine.h"
#include "engine/core/sandbox.h"

#include <stddef.h>
#include <string.h>

struct bound {
    const char *name, *unit;
    size_t offset;
};
static const struct bound bounds[] = {
    {"timeout", "ms", offsetof(struct limits, timeout_ms)},
    {"memory", "MB", offsetof(struct limits, memory_mb)},
    {"cpu", "seconds", offsetof(struct limits, cpu_seconds)},
    {"cpus", "percent of a core", offsetof(struct limits, cpus_percent)},
    {"pids", "processes", offsetof(struct limits, pids)},
    {"disk", "MB", offsetof(struct limits, disk_mb)},
    {"open-files", "descriptors", offsetof(struct limits, open_files)},
};

static uint32_t *field(const struct limits *l, size_t offset) {
    return (uint32_t *)((uintptr_t)l + offset);
}

int limits_settle(const struct limits *defaults, const struct limits *maxima, struct limits *l,
                  struct err *e) {
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        const struct bound *b = &bounds[i];
        uint32_t *v = field(l, b->offset), usual = *field(defaults, b->offset);
        uint32_t most = *field(maxima, b->offset);
        if (*v == 0)
            *v = usual;
        if (most && *v > most && *v > usual)
            return err_user(e, "limit_too_high",
                            "%s of %u %s is above this engine's maximum of %u %s", b->name, *v,
                            b->unit, most > usual ? most : usual, b->unit);
    }
    uint64_t most = maxima->output_bytes;
    if (most < defaults->output_bytes)
        most = defaults->output_bytes;
    if (l->output_bytes == 0)
        l->output_bytes = defaults->output_bytes;
    if (l->output_bytes > most)
        return err_user(e, "limit_too_high",
                        "output of %llu bytes is above this engine's maximum of %llu bytes",
                        (unsigned long long)l->output_bytes, (unsigned long long)most);
    return 0;
}

int admit_place(struct profile_pool *p, const struct limits *l, uint64_t files_bytes,
                const char *tenant, struct err *e) {
    struct engine *g = p->engine;
    bool memory = budget_lets(g, l, files_bytes);
    if ((p->ready && p->queue.n == 0 && memory) || p->queue.n < g->config.queue_max)
        return 0;
    err_user(e, p->ready && !memory ? "memory_budget" : "queue_full",
             "%u requests wait already for %s of profile %.*s", p->queue.n,
             p->ready && !memory ? "memory for a sandbox" : "a sandbox",
             (int)strcspn(p->config->name, "+"), p->config->name); /* without "+live" */
    struct queue_item *other = queue_surplus(&p->queue, tenant);
    if (!other)
        return -1;
    struct guest *who = other->owner;
    queue_remove(&p->queue, other);
    who->kind->fail(who->owner, e);
    return 0;
}
