#pragma once
/* /proc of a sandbox: its own processes, and of the rest a few files that are the same for all. */

#include "base/err.h"
#include "sandbox/root.h"

#include <stdint.h>

/* Every look at it is another number: it is no figure of the machine, and bound as it is. */
#define PROC_UUID      "/proc/sys/kernel/random/uuid"
#define PROC_UUID_MADE ROOT_PYLIB "/proc/sys/kernel/random/uuid"

/* In the new root, while the host's /proc is in sight: makes the files that stand for its own. */
int proc_make(int root, uint32_t memory_mb, struct err *e);
/* In a sandbox's own pid and mount namespaces, in its init: mounts /proc. Leaves a few descriptors
 * above PROC_PINS open, which have to stay so. */
int proc_mount(struct err *e);
#define PROC_PINS 200
/* Another size of memory for /proc/meminfo to say. *fd is the sandbox's own file for that, kept by
 * the caller from one call to the next, or why there is none. */
enum { PROC_MEMORY_BORN = -1, PROC_MEMORY_USUAL = -2 };
int proc_memory(int *fd, uint32_t memory_mb, struct err *e);
