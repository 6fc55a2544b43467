/* A sandbox's own memory. Files on tmpfs are memory, too, and the kernel has one number for both:
 * the control group may hold memory_mb and disk_mb together, so that a full disk is ENOSPC and
 * nobody is killed for it. A program without files could so have its disk as memory. Where that is
 * much, this looks at what is no file, and when that is more than memory_mb the group's limit
 * becomes what it holds at the moment: whoever goes on growing meets the kernel. When the memory is
 * given back, the limit is as before.
 *
 * What can be had between two looks is what a program touches in LOOK_NS, and in REST_NS after
 * nothing has changed for a while; never more than memory_mb and disk_mb together.
 *
 * A limit below what the group holds would have the kernel kill while we wait (control groups v2
 * of kernels that do not know O_NONBLOCK there), or be refused (v1). So the new limit is what the
 * group holds at that very moment, and more than a program can touch until it is written. */

#include "engine/core/memory_watch.h"

#include "base/clock.h"
#include "engine/core/engine.h"
#include "engine/core/sandbox.h"

#define LOOSE_MB 64 /* of disk: as much is not looked at */
#define LOOK_NS  50000000u
#define REST_NS  500000000u /* while nothing changes */
#define SLACK    (8u << 20)

static bool is_loose(const struct sandbox *s) {
    return s->guest && s->guest->limits->disk_mb > LOOSE_MB && cgroup_fds_there(s->cgroup);
}

/* What the server wrote there is charged to the server; so this is never too much. */
static uint64_t own_bytes(const struct sandbox *s) {
    uint64_t shared, private = cgroup_fds_anonymous(s->cgroup, &shared),
                     files = sandbox_disk_bytes(s);
    return private + (shared > files ? shared - files : 0);
}

/* True: something changed. */
static bool look(struct sandbox *s) {
    const struct limits *l = s->guest->limits;
    uint64_t used = cgroup_fds_memory(s->cgroup), limit = (uint64_t)l->memory_mb << 20;
    bool over = used > limit && own_bytes(s) > limit, changed = used != s->memory_seen;
    struct err e;
    s->memory_seen = used;
    if (over == s->is_tight)
        return changed;
    uint64_t most = config_group_bytes(l), now = over ? cgroup_fds_memory(s->cgroup) + SLACK : most;
    if (cgroup_fds_set_memory(s->cgroup, now < most ? now : most, &e) == 0)
        s->is_tight = over;
    return changed;
}

static void memory_on_look(struct timer *t) {
    struct engine *g = t->arg;
    bool any = false, changed = false;
    for (struct sandbox *s = g->sandboxes; s; s = s->next) {
        if (!is_loose(s))
            continue;
        any = true;
        changed |= look(s);
    }
    if (any)
        loop_timer(g->loop, t, now_ns() + (changed ? LOOK_NS : REST_NS));
}

void memory_watch(struct sandbox *s) {
    struct engine *g = s->engine;
    s->is_tight = false;
    if (!is_loose(s))
        return;
    g->look.fn = memory_on_look;
    g->look.arg = g;
    memory_wake(g);
}

void memory_wake(struct engine *g) {
    uint64_t next = now_ns() + LOOK_NS;
    if (g->look.fn && (!g->look.place || g->look.at_ns > next))
        loop_timer(g->loop, &g->look, next);
}
