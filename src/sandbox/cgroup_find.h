#pragma once
/* Where this process's own control groups are, and which controllers they have. Pure functions of
 * texts. For cgroup*.c and their tests only. */

#include "sandbox/cgroup.h"

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

/* Controllers, as far as they matter to us. */
enum {
    ROLE_MEMORY = 1 << 0,
    ROLE_PIDS = 1 << 1,
    ROLE_CPU = 1 << 2,
    ROLE_CPUACCT = 1 << 3,
    ROLE_FREEZER = 1 << 4,
    ROLES_V1 = ROLE_MEMORY | ROLE_PIDS | ROLE_CPU | ROLE_CPUACCT, /* a freezer is welcome */
    ROLES_V2 = ROLE_MEMORY | ROLE_PIDS | ROLE_CPU,
};

#define CGROUP_PREFIX "cloche-" /* of a warden's directory; its pid follows */

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
