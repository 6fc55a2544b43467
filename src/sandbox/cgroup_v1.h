#pragma once
/* cgroup v1; see cgroup_ops.h. */

#include "sandbox/cgroup_ops.h"

extern const struct cgroup_ops cgroup_v1_ops;
