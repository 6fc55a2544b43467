#pragma once
/* Landlock, where the kernel has it: below the mount namespace, one more wall around the files. */

#include "base/err.h"

/* The version of the kernel's Landlock, 0 where there is none that can be used (version 1, of
 * kernels before 5.19, refuses renames between directories). */
int landlock_abi(void);

/* In init, after its mounts: a ruleset that allows reading and executing everywhere and writing
 * below /workspace, /tmp, /dev/shm and to the devices; nothing may be signalled and no abstract
 * socket be reached outside (ABI 6). Returns 0 with *ret_fd -1 where there is no Landlock. */
int landlock_ruleset(int *ret_fd, struct err *e);

/* In a kernel, no_new_privs set. Async-signal-safe. */
int landlock_enter(int ruleset, struct err *e);
