#pragma once
/* Ending what is in a control group: thaw, kill, remove. Groups are known by a descriptor of their
 * directory and by the number of their hierarchy in the root. For cgroup*.c only. */

#include "sandbox/cgroup.h"

void cgroup_thaw(const struct cgroup_root *r, unsigned i, int dir);
void cgroup_kill(const struct cgroup_root *r, unsigned i, int dir);
/* Removes the group with its subs, if any are left; -1 with errno. */
int cgroup_remove(int parent, const char *name, int dir);
/* Kills and removes the slots in a warden's directories, one per hierarchy or -1. Waits until they
 * are gone. */
void cgroup_clear(const struct cgroup_root *r, const int *dirs);
/* Ends and removes a warden's directories, unless somebody holds the lock of one. */
void cgroup_sweep_name(const struct cgroup_root *r, const char *name);
