/* A sandbox's own memory. Files on tmpfs are memory, too, and the kernel has one number for both:
 * the control group may hold memory_mb and disk_mb together, so that a full disk is ENOSPC and
 * nobody is killed for it. A program without files could so have its disk as memory. Where that is
 * much, this looks at what is no file (private and shared memory, and what the kernel keeps for it:
 * sockets, page tables), and when that is more than memory_mb the group's limit becomes what it
 * holds at the moment: whoever goes on growing meets the kernel. When the memory is given back, the
 * limit is as before.
 *
 * Files and shared memory are one number of the group's. How much the files take, their disk tells;
 * but those that the server wrote are charged to the server, and do not explain any shared memory.
 * Which ones are still there, nobody tells: they are followed from look to look. What the server
 * wrote counts as far as the files grew; when files become fewer and the group's number does not,
 * they were the server's.
 *
 * What can be had between two looks is what a program touches in LOOK_MS, and in REST_MS after
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
#define LOOK_MS  50u
#define REST_MS  500u /* while nothing changes */
#define SLACK    (8u << 20)

static bool is_loose(const struct sandbox *s) {
    return s->guest && s->guest->limits->disk_mb > LOOSE_MB && cgroup_fds_there(s->cgroup);
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t beyond(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

static void follow_files(struct sandbox *s, uint64_t files, uint64_t shared) {
    uint64_t grown = beyond(files, s->seen.files), less = beyond(s->seen.files, files);
    uint64_t less_of_own = beyond(s->seen.shared, shared);
    s->seen.uploaded += smaller(grown, s->written_bytes - s->seen.written);
    s->seen.uploaded = beyond(s->seen.uploaded, beyond(less, less_of_own));
    s->seen.uploaded = smaller(s->seen.uploaded, files);
    s->seen.files = files;
    s->seen.shared = shared;
    s->seen.written = s->written_bytes;
}

/* Of the memory that it uses, what is in no file. The numbers are read one after the other, and the
 * one before the others and the one after: files that come or go meanwhile are no memory. */
static uint64_t own_bytes(struct sandbox *s, uint64_t used) {
    uint64_t shared, cached = cgroup_fds_cached(s->cgroup, &shared), files = sandbox_disk_bytes(s);
    follow_files(s, files, shared);
    used = smaller(used, cgroup_fds_memory(s->cgroup));
    return beyond(used, cached + smaller(shared, files - s->seen.uploaded));
}

/* True: something changed. */
static bool look(struct sandbox *s) {
    const struct limits *l = s->guest->limits;
    uint64_t used = cgroup_fds_memory(s->cgroup), limit = (uint64_t)l->memory_mb << 20;
    bool is_followed = used > limit || s->written_bytes;
    bool over = is_followed && own_bytes(s, used) > limit, changed = used != s->seen.memory;
    struct err e;
    s->seen.memory = used;
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
        loop_timer_in_ms(g->loop, t, changed ? LOOK_MS : REST_MS);
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

void memory_inherit(struct sandbox *s) {
    s->seen.files = sandbox_disk_bytes(s);
    cgroup_fds_cached(s->cgroup, &s->seen.shared);
    s->seen.uploaded = beyond(s->seen.files, s->seen.shared);
    memory_watch(s);
}

void memory_wake(struct engine *g) {
    if (g->look.fn && (!g->look.place || g->look.at_ns > now_ns() + ms_to_ns(LOOK_MS)))
        loop_timer_in_ms(g->loop, &g->look, LOOK_MS);
}
