/* Slots: the places for sandboxes. Each has a control group and stands for a uid of the nursery's
 * range; both serve again when, and only when, nothing of the last sandbox is left. */

#include "warden/slots.h"

#include "base/log.h"
#include "warden/groups.h"
#include "warden/nurseries.h"
#include "warden/survivors.h"

#include <errno.h>
#include <string.h>

#define RECHECK_MS  20
#define PATIENCE    500 /* looks: ten seconds, then the group is made anew */
#define RARELY      25  /* after that: one look in so many */
#define GARBAGE     50  /* looks: by then the kernel has collected what was buried */
#define MUCH        (16u << 20)
#define SPARE_MS    5000
#define STRANDED_MS 1000
#define SPARE       16 /* control groups beyond those in use that stay: making one takes a while */
#define AT_ONCE     16 /* that are removed in one turn */

struct slot *slots_find(struct warden *w, uint64_t sandbox) {
    for (unsigned i = 0; i < w->nslots; i++) {
        if (w->slots[i].state == SLOT_USED && w->slots[i].sandbox == sandbox)
            return &w->slots[i];
    }
    return NULL;
}

static int prepare(struct warden *w, struct slot *s, struct err *e) {
    if (!s->made) {
        unsigned index = (unsigned)(s - w->slots);
        if (cgroup_slot_make(&w->cgroups, index, &w->limits, &s->cgroup, e) < 0)
            return -1;
        s->made = true;
        s->known = false;
        return 0;
    }
    if (cgroup_slot_reset(&w->cgroups, &s->cgroup, &w->limits, e) < 0) {
        cgroup_slot_done(&w->cgroups, &s->cgroup, true);
        s->made = false;
        return -1;
    }
    if (s->cgroup.renewed)
        s->known = false;
    return 0;
}

struct slot *slots_take(struct warden *w, struct nursery_child *n, struct err *e) {
    struct slot *s = NULL;
    for (unsigned i = 0; i < w->nslots && !s && w->used < w->config.max_sandboxes; i++) {
        if (w->slots[i].state == SLOT_FREE)
            s = &w->slots[i];
    }
    if (!s) {
        err_set(e, EAGAIN, "all %u sandboxes are in use", w->config.max_sandboxes);
        return NULL;
    }
    if (prepare(w, s, e) < 0) {
        err_wrap(e, "control group");
        return NULL;
    }
    if (++w->used > w->most_used)
        w->most_used = w->used;
    s->state = SLOT_USED;
    s->settled = s->told = s->ending = s->orphan = false;
    s->nursery = n;
    s->sandbox = ++w->last_sandbox;
    return s;
}

static struct wire_fds slot_fds(const int *fds, unsigned n) {
    struct wire_fds f = {.n = n};
    memcpy(f.fd, fds, n * sizeof *fds);
    return f;
}

struct wire_fds slots_knobs(const struct cgroup_slot *g) {
    return slot_fds(g->knobs, g->nknobs);
}

struct wire_fds slots_procs(const struct cgroup_slot *g) {
    return slot_fds(g->procs, g->nprocs);
}

void slots_end(const struct slot *s) {
    struct wire_out o;
    n_end_put(&o, &(struct n_end){.sandbox = s->sandbox});
    chan_send(&s->nursery->chan, &o);
}

static bool is_clean(struct warden *w, struct slot *s) {
    return groups_clear(w, s) && cgroup_slot_is_clean(&w->cgroups, &s->cgroup);
}

void slots_look_again(struct warden *w) {
    if (!w->dirty_timer.place)
        loop_timer_in_ms(w->loop, &w->dirty_timer, RECHECK_MS);
}

static void tell_gone(struct warden *w, struct slot *s) {
    struct wire_out o;
    s->untold = false;
    w_gone_put(&o, &(struct w_gone){.sandbox = s->sandbox});
    chan_send(&w->server_chan, &o);
}

/* SECURITY: what a program buries in messages that nobody will read (a memfd in a socket in a
 * socket …) outlives its processes by seconds. As long as it does, it counts. */
static bool has_memory(const struct warden *w, const struct slot *s) {
    return s->made && cgroup_slot_bytes(&w->cgroups, &s->cgroup) > MUCH;
}

void slots_release(struct warden *w, struct slot *s) {
    survivors_free(s);
    w->used--;
    s->state = SLOT_FREE;
    s->untold = has_memory(w, s);
    if (!s->untold)
        tell_gone(w, s);
    if (s->made && !is_clean(w, s)) {
        s->state = SLOT_DIRTY;
        s->looks = 0;
        s->shrink = false;
        slots_look_again(w);
    }
    if (!w->spare_timer.place)
        loop_timer_in_ms(w->loop, &w->spare_timer, SPARE_MS);
    if (!w->stranded_timer.place)
        loop_timer_in_ms(w->loop, &w->stranded_timer, STRANDED_MS);
    nurseries_left(w, s->nursery);
}

/* SECURITY: what a neighbour holds of a sandbox that is gone, in descriptors that it was passed, is
 * in no control group of a sandbox, but in the one that has them all. */
void slots_weigh_stranded(struct timer *t) {
    struct warden *w = t->arg;
    uint64_t all = cgroup_root_bytes(&w->cgroups);
    for (unsigned i = 0; all > MUCH && i < w->nslots; i++) {
        const struct slot *s = &w->slots[i];
        uint64_t its = 0;
        if (s->made && (s->state == SLOT_USED || s->untold))
            its = cgroup_slot_bytes(&w->cgroups, &s->cgroup);
        all -= its < all ? its : all;
    }
    all = all > MUCH ? all : 0;
    if (all != w->stranded_told) {
        struct wire_out o;
        w->stranded_told = all;
        w_stranded_put(&o, &(struct w_stranded){.bytes = all});
        chan_send(&w->server_chan, &o);
    }
    if (all)
        loop_timer_in_ms(w->loop, t, STRANDED_MS);
}

static void give_up(struct warden *w, struct slot *s) {
    log_warn("control group not empty, making a new one slot=%u", (unsigned)(s - w->slots));
    cgroup_slot_kill(&w->cgroups, &s->cgroup);
    groups_forget(w, s);
    cgroup_slot_done(&w->cgroups, &s->cgroup, true);
    s->made = false;
    s->state = SLOT_FREE;
}

/* SECURITY: the kernel remembers names that a program looked up, found or not, until memory runs
 * short somewhere. They are charged to the slot: without this, a program that asks for many would
 * take a place away for good. One at a time, since it is work for strangers. */
static void shrink(struct warden *w, struct slot *s) {
    s->shrink |= s->looks == GARBAGE || s->looks % PATIENCE == 0;
    if (!s->shrink || w->shrinker)
        return;
    pid_t pid = cgroup_slot_shrink(&w->cgroups, &s->cgroup);
    w->shrinker = pid > 0 ? pid : 0;
    s->shrink = false;
}

/* One that has memory is never given up: whoever has that (a client that is slow to read a file of
 * it) takes away a place. Whoever waits for the end of the sandbox does not wait for ever. */
static void look_at_dirty(struct warden *w, struct slot *s) {
    bool late = ++s->looks >= PATIENCE;
    if (late && s->looks % RARELY)
        return;
    bool clean = is_clean(w, s), memory = !clean && has_memory(w, s);
    if (s->untold && (late || !memory))
        tell_gone(w, s);
    if (clean)
        s->state = SLOT_FREE;
    else if (memory)
        shrink(w, s);
    else if (late)
        give_up(w, s);
}

void slots_recheck(struct timer *t) {
    struct warden *w = t->arg;
    bool more = false;
    for (unsigned i = 0; i < w->nslots; i++) {
        struct slot *s = &w->slots[i];
        if (s->state == SLOT_USED)
            more |= groups_retry(w, s);
        if (s->state == SLOT_DIRTY)
            look_at_dirty(w, s);
        more |= s->state == SLOT_DIRTY;
    }
    if (more)
        loop_timer_in_ms(w->loop, &w->dirty_timer, RECHECK_MS);
}

static bool is_spare(const struct slot *s) {
    return s->made && s->state == SLOT_FREE;
}

static void slot_forget(struct warden *w, struct slot *s) {
    struct wire_out o;
    cgroup_slot_done(&w->cgroups, &s->cgroup, true);
    s->made = false;
    w_forget_put(&o, &(struct w_forget){.slot = (uint32_t)(s - w->slots)});
    chan_send(&w->server_chan, &o);
}

void slots_spare(struct timer *t) {
    struct warden *w = t->arg;
    unsigned spare = 0, forgotten = 0, keep = w->most_used - w->used + SPARE;
    for (unsigned i = 0; i < w->nslots; i++)
        spare += is_spare(&w->slots[i]);
    for (unsigned i = w->nslots; i-- && spare > keep && forgotten < AT_ONCE;) {
        if (!is_spare(&w->slots[i]))
            continue;
        slot_forget(w, &w->slots[i]);
        forgotten++;
        spare--;
    }
    bool later = forgotten < AT_ONCE;
    if (later)
        w->most_used = w->used;
    if (spare > SPARE)
        loop_timer_in_ms(w->loop, t, later ? SPARE_MS : RECHECK_MS);
}
