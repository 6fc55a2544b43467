#pragma once
/* Memory that the kernel holds for a sandbox and that belongs to none of its processes. */

#include <stdbool.h>
#include <stdint.h>

struct kernel_bytes {
    uint64_t segments; /* System V shared memory, which may be mapped as well */
    uint64_t rest;     /* messages and semaphores of System V, what is in sockets */
};
/* `network`: sockets of TCP and UDP may be there. */
struct kernel_bytes watch_kernel(bool network);
