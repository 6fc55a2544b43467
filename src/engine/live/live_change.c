/* What can be changed of a live sandbox while it lives: its limits and times, its name, and whether
 * it runs at all. */

#include "engine/live/live_change.h"

#include "base/buf.h"
#include "base/clock.h"
#include "engine/core/admit.h"
#include "engine/core/memory_watch.h"
#include "engine/kernel/cell.h"
#include "engine/kernel/kernel.h"
#include "engine/live/command.h"
#include "engine/live/keep.h"
#include "engine/live/live_admit.h"
#include "engine/process/group.h"
#include "engine/process/live_state.h"
#include "engine/process/pace.h"

#include <stdlib.h>

int live_pause(struct live *l, bool pause, struct err *e) {
    if (l->paused == pause)
        return 0;
    if (!cgroup_fds_there(l->sandbox->cgroup))
        return err_user(e, "cannot_pause", "this machine has no freezer for sandboxes");
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

/* The kernel would try for long to reclaim memory, and then refuse the limit or kill for it. */
static int check_memory(const struct live *l, const struct limits *next, struct err *e) {
    uint64_t used = cgroup_fds_memory(l->sandbox->cgroup);
    if (next->memory_mb >= l->req.limits.memory_mb || used <= config_group_bytes(next))
        return 0;
    return err_user(e, "bad_value",
                    "memory_mb of %u is too low: the sandbox uses %llu MB; delete files or "
                    "restart kernels first",
                    next->memory_mb, (unsigned long long)(used >> 20));
}

/* The kernel leaves the size of a disk as it is when the disk is fuller than that. */
static int check_disk(const struct live *l, const struct limits *next, struct err *e) {
    uint64_t used = sandbox_disk_bytes(l->sandbox);
    if (next->disk_mb >= l->req.limits.disk_mb || used <= (uint64_t)next->disk_mb << 20)
        return 0;
    return err_user(e, "bad_value",
                    "disk_mb of %u is too low: the sandbox's files have %llu MB; delete some first",
                    next->disk_mb, (unsigned long long)((used + (1u << 20) - 1) >> 20));
}

/* Version 1 refuses a group less than one of its children has. */
static int lower_kernels(struct live *l, const struct limits *next, struct err *e) {
    for (struct kernel *k = l->kernels; k; k = k->next) {
        if (group_lower(&k->process, next, e) < 0)
            return err_wrap(e, "kernel %s", k->id);
    }
    return 0;
}

static int change_limits(struct live *l, const struct limits *want, struct err *e) {
    struct limits next = *want;
    if (limits_settle(&l->req.limits, &l->engine->config.maxima, LIMIT_OF_ANY, &next, e) < 0 ||
        check_memory(l, &next, e) < 0 || check_disk(l, &next, e) < 0 ||
        lower_kernels(l, &next, e) < 0 || stage_cgroup(l->sandbox, &next, true, e) < 0)
        return -1;
    if (!limits_same(&next, &l->req.limits, LIMIT_OF_WHOLE)) {
        struct wire_out o;
        i_limits_put(&o, &(struct i_limits){.limits = next});
        live_ask(l, &o, nobody, l);
    }
    l->req.limits = next;
    memory_watch(l->sandbox);
    return 0;
}

void live_heard(struct live *l, uint64_t cpu_ns) {
    pace_heard(l, NULL, cpu_ns);
}

void live_served(struct live *l, uint64_t cpu_ns) {
    pace_served(l, cpu_ns);
}

void live_set_port(struct live *l, uint16_t port) {
    l->port = port;
    live_changed(l);
}

int live_change(struct live *l, const struct live_change *c, struct err *e) {
    struct live_request q = {.ttl_s = c->ttl_s, .idle_s = c->idle_s};
    if (live_settle_time(l->engine, &q, e) < 0 || (c->limits && change_limits(l, c->limits, e) < 0))
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
    live_set_timer(l);
    buf_clear(&l->lasting);
    live_changed(l);
    return 0;
}
