/* The control groups of kernels that have limits of their own. One is made when its kernel is asked
 * for. When the kernel has ended, the server reads from it how that was and says so (W_LEFT); then
 * what the kernel left behind is killed, and the group removed as soon as the last process in it is
 * dead. What is still there when the sandbox is gone is removed before the slot serves again. */

#include "warden/groups.h"

#include "base/buf.h"
#include "base/list.h"
#include "warden/slots.h"

#include <errno.h>
#include <stdlib.h>

#define GROUPS_MAX 128 /* of one slot: no more processes than that are ever on their way */

struct group {
    struct group *next;
    uint32_t number;
    bool left; /* to be removed */
    struct cgroup_slot cgroup;
};

static struct group *find_group(const struct slot *s, uint32_t number) {
    struct group *g = s->groups;
    while (g && (g->number != number || g->left))
        g = g->next;
    return g;
}

bool groups_retry(struct warden *w, struct slot *s) {
    bool more = false;
    for (struct group **at = &s->groups; *at;) {
        struct group *g = *at;
        if (!g->left || !cgroup_sub_remove(&w->cgroups, &s->cgroup, &g->cgroup)) {
            more |= g->left;
            at = &g->next;
            continue;
        }
        (void)LIST_POP(at, next);
        cgroup_slot_done(&w->cgroups, &g->cgroup, false);
        free(g);
    }
    return more;
}

static unsigned count(const struct slot *s) {
    unsigned n = 0;
    for (const struct group *g = s->groups; g; g = g->next)
        n++;
    return n;
}

const struct cgroup_slot *groups_make(struct warden *w, struct slot *s, uint32_t number,
                                      const struct cgroup_limits *l, struct err *e) {
    groups_retry(w, s);
    if (find_group(s, number) || count(s) >= GROUPS_MAX) {
        err_set(e, EAGAIN, "the sandbox has too many control groups that are not empty");
        return NULL;
    }
    struct group *g = xcalloc(1, sizeof *g);
    if (cgroup_sub_make(&w->cgroups, &s->cgroup, number, l, &g->cgroup, e) < 0) {
        free(g);
        return NULL;
    }
    g->number = number;
    g->next = s->groups;
    s->groups = g;
    return &g->cgroup;
}

const struct cgroup_slot *groups_find(const struct slot *s, uint32_t number) {
    const struct group *g = find_group(s, number);
    return g ? &g->cgroup : NULL;
}

void groups_left(struct warden *w, struct slot *s, uint32_t number) {
    struct group *g = find_group(s, number);
    if (!g)
        return;
    g->left = true;
    if (groups_retry(w, s))
        slots_look_again(w);
}

bool groups_clear(struct warden *w, struct slot *s) {
    for (struct group *g = s->groups; g; g = g->next)
        g->left = true;
    return !groups_retry(w, s);
}

void groups_forget(struct warden *w, struct slot *s) {
    while (s->groups) {
        struct group *g = s->groups;
        s->groups = g->next;
        cgroup_slot_done(&w->cgroups, &g->cgroup, false);
        free(g);
    }
}
