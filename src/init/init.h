#pragma once
/* PID 1 of a sandbox. Runs in a process that the nursery cloned into new pid, mount, ipc and uts
 * namespaces (and into a network namespace of the pool); see init.c. */

#include <stdint.h>

struct init_plan {
    uint32_t uid; /* the sandbox's, as the nursery's user namespace counts */
    uint32_t disk_mb, tmp_mb;
};

/* `sock` is the SEQPACKET socket to the nursery for I_READY or I_BROKEN. Never returns. */
_Noreturn void init_main(const struct init_plan *plan, int sock);
