#pragma once
/* A kernel of a live sandbox may have a control group of its own below the slot's: see groups.c. */

#include "warden/warden.h"

/* NULL and why. */
const struct cgroup_slot *groups_make(struct warden *w, struct slot *s, uint32_t number,
                                      const struct cgroup_limits *l, struct err *e);
/* NULL: it has none. */
const struct cgroup_slot *groups_find(const struct slot *s, uint32_t number);
/* The kernel has ended, and nobody wants to read the group any more: what the kernel left behind in
 * it ends, too. */
void groups_left(struct warden *w, struct slot *s, uint32_t number);
/* The sandbox is gone. True when no group is left; else it is to be asked again. */
bool groups_clear(struct warden *w, struct slot *s);
/* Those that are left: tries each once. True when some are still there. */
bool groups_retry(struct warden *w, struct slot *s);
/* Closes those that cannot be removed. */
void groups_forget(struct warden *w, struct slot *s);
