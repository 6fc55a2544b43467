#pragma once
/* Slots: the places for sandboxes. See slots.c. */

#include "warden/warden.h"
#include "wire/codec.h"

struct slot *slots_take(struct warden *w, struct nursery_child *n, struct err *e);
struct slot *slots_find(struct warden *w, uint64_t sandbox);
/* Kills its sandbox. */
void slots_end(const struct slot *s);
/* The sandbox is gone. */
void slots_release(struct warden *w, struct slot *s);
/* Something is about to be empty. */
void slots_look_again(struct warden *w);
void slots_recheck(struct timer *t);
/* Control groups that nobody has needed for a while are removed: the kernel's memory for each is
 * about a megabyte. */
void slots_spare(struct timer *t);
/* Tells the server what sandboxes have left that are gone for it. */
void slots_weigh_stranded(struct timer *t);
/* A group's descriptors as they travel; borrowed. */
struct wire_fds slots_knobs(const struct cgroup_slot *g);
struct wire_fds slots_procs(const struct cgroup_slot *g);
