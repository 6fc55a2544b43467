#pragma once
/* cgroup v2; see cgroup_ops.h. */

#include "sandbox/cgroup_ops.h"

extern const struct cgroup_ops cgroup_v2_ops;
