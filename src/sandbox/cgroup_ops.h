#pragma once
/* What v1 and v2 do differently. For cgroup*.c only. */

#include "sandbox/cgroup_find.h"

#define CGROUP_MAIN "main" /* v2: the leaf of a slot that has subs */
#define CGROUP_SELF "self" /* v2: the leaf for processes that may not stay in the parent */

struct cgroup_ops {
    struct {
        unsigned role;
        const char *name;
        int flags;
    } knobs[KNOBS_];
    const char *join;      /* the file that a process with one thread writes "0" to */
    const char *file_stat; /* the word for page cache in memory.stat, shmem included */
    const char *shrink[2]; /* a file, and what to write there so that caches are freed */

    /* Fills parents, ndirs, roles and where. */
    int (*find)(const struct cgroup_places *p, struct cgroup_root *r, struct err *e);
    /* After our directories were made in the parents: makes the controllers work there. */
    int (*enable)(struct cgroup_root *r, struct err *e);
    /* Before our directories are removed, their slots gone: undoes enable. */
    void (*disable)(struct cgroup_root *r);
    /* A dead warden's directory, its slots gone: takes over what must not be lost with it. */
    void (*inherit)(const struct cgroup_root *r, int dead);
    /* What never changes in a slot. */
    int (*prepare)(const struct cgroup_slot *s, struct err *e);
    /* So that it can have subs. */
    int (*split)(const struct cgroup_root *r, struct cgroup_slot *s, struct err *e);
    /* Before a sub is removed. */
    void (*let_go)(const struct cgroup_slot *sub);
    int (*limit)(const struct cgroup_slot *s, const struct cgroup_limits *l, struct err *e);
    /* False when the peak goes on from before: the groups must be made anew. */
    bool (*restart_peak)(const struct cgroup_slot *s);
};

const struct cgroup_ops *cgroup_ops_of(const struct cgroup_root *r);
/* The directory of the hierarchy that has the controller, of a root's or a slot's `dirs`; or -1. */
int cgroup_role_dir(const struct cgroup_root *r, const int *dirs, unsigned role);
