#pragma once
/* Reading and writing the files of a control group. For cgroup*.c and their tests only. */

#include "base/buf.h"
#include "base/err.h"
#include "sandbox/cgroup.h"

#include <sys/types.h>

/* The whole file, added to `to`; EFBIG past a bound that no file of a control group reaches. */
int cgroup_slurp(int dir, const char *name, struct buf *to, struct err *e);
/* Every process listed in dir's cgroup.procs that we can see. Returns how many there are in all, or
 * -1 where the list cannot be read. */
int cgroup_each_proc(int dir, void (*fn)(pid_t pid, void *ctx), void *ctx);
int cgroup_knob_write(const struct cgroup_slot *s, enum cgroup_knob k, const char *text,
                      struct err *e);
int cgroup_knob_write_number(const struct cgroup_slot *s, enum cgroup_knob k, uint64_t number,
                             struct err *e);
