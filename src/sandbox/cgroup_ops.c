/* See cgroup_ops.h. */

#include "sandbox/cgroup_ops.h"

#include "sandbox/cgroup_v1.h"
#include "sandbox/cgroup_v2.h"

const struct cgroup_ops *cgroup_ops_of(const struct cgroup_root *r) {
    return r->kind == CGROUP_V2 ? &cgroup_v2_ops : &cgroup_v1_ops;
}

int cgroup_role_dir(const struct cgroup_root *r, const int *dirs, unsigned role) {
    for (unsigned i = 0; i < r->ndirs; i++)
        if (r->roles[i] & role)
            return dirs[i];
    return -1;
}
