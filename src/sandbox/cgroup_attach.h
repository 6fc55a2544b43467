#pragma once
/* Joining a slot's control groups: the one part of cgroup.h that runs in a sandbox's processes,
 * between fork and hand-over. */

#include "base/err.h"

/* After fork, with one thread: the calling process joins. Async-signal-safe. */
int cgroup_attach(const int *procs, unsigned nprocs, struct err *e);
