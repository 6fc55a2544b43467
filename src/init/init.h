#pragma once
/* PID 1 of a sandbox. Runs in a process that the nursery cloned into new pid, mount, ipc and uts
 * namespaces (and into a network namespace of the pool); see init.c. */

#include "config/config.h"
#include "init/machine.h"
#include "sandbox/root.h"

#include <stdint.h>

struct init_plan {
    const struct config *config;     /* borrowed: the numbers of the nursery's part */
    struct limits limits;            /* of the sandbox as a whole, as they are now */
    uint32_t uid;                    /* the sandbox's, as the nursery's user namespace counts */
    uint32_t live;                   /* 1: more kernels may come after the first */
    uint8_t *used;                   /* shared with the nursery: 1 when the network may be in use */
    const struct root_mount *mounts; /* host directories in the workspace */
    unsigned nmounts;
    const struct root_mount *allowed; /* those that the server may ask for */
    unsigned nallowed;
    bool has_trees;   /* tenants have profiles of their own */
    const int *procs; /* cgroup.procs files of the sandbox's control groups; they stay open */
    unsigned nprocs;
    int machine[MACHINE_FILES]; /* see machine_open; init moves them */
};

/* `hand` is a SEQPACKET socket, at whose other end is the nursery, which gets I_READY or I_BROKEN
 * and may ask for more (I_MORE), and with it each kernel on its way in, which hands over its
 * listener. Never returns. */
_Noreturn void init_main(const struct init_plan *plan, int hand);
