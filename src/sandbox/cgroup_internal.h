#pragma once
/* Shared by cgroup*.c and their tests, nobody else. */

#include "base/buf.h"
#include "sandbox/cgroup.h"

#include <limits.h>
#include <sys/types.h>

enum {
    ROLE_MEMORY = 1 << 0,
    ROLE_PIDS = 1 << 1,
    ROLE_CPU = 1 << 2,
    ROLE_CPUACCT = 1 << 3,
    ROLE_FREEZER = 1 << 4,
    ROLES_V1 = ROLE_MEMORY | ROLE_PIDS | ROLE_CPU | ROLE_CPUACCT, /* a freezer is welcome */
    ROLES_V2 = ROLE_MEMORY | ROLE_PIDS | ROLE_CPU,
};

#define CGROUP_PREFIX "cloche-"
#define CGROUP_MAIN   "main" /* v2: the leaf of a slot that has subs */
#define CGROUP_SELF   "self" /* v2: the leaf for processes that may not stay in the parent */

/* Where this process's own groups are, as directories. */
struct cgroup_place {
    unsigned roles;
    char path[PATH_MAX];
};
struct cgroup_places {
    struct cgroup_place v1[CGROUP_MAX_PROCS]; /* one per hierarchy that has a role */
    unsigned nv1;
    char v2[PATH_MAX]; /* "" when there is none, whatever its controllers */
};

/* From the texts of /proc/self/mountinfo and /proc/self/cgroup. What is not visible through any
 * mount is left out. */
void cgroup_places_parse(const char *mountinfo, const char *self, struct cgroup_places *ret);
/* The roles named in a list of words separated by any of `separators`. */
unsigned cgroup_roles_parse(const char *text, const char *separators);
/* "memory, pids"; returns out. */
const char *cgroup_roles_format(unsigned roles, char *out, size_t cap);
/* The pid in "cloche-<pid>", 0 for any other name. */
pid_t cgroup_name_pid(const char *name, size_t len);

/* What v1 and v2 do differently. */
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
extern const struct cgroup_ops cgroup_v1_ops, cgroup_v2_ops;

/* The whole file, added to `to`; EFBIG past a bound that no file of these has. */
int cgroup_slurp(int dir, const char *name, struct buf *to, struct err *e);
/* Every process listed in dir's cgroup.procs that we can see. Returns how many there are in all, or
 * -1 where the list cannot be read. */
int cgroup_each_proc(int dir, void (*fn)(pid_t pid, void *ctx), void *ctx);
int cgroup_knob_write(const struct cgroup_slot *s, enum cgroup_knob k, const char *text,
                      struct err *e);
