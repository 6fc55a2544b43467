#pragma once
/* The way of a zygote's child into its sandbox. */

#include "base/err.h"
#include "wire/codec.h"

#include <stddef.h>
#include <stdint.h>

#define KERNEL_CTL_FD 1000 /* where the control socket stays: out of the way of user code */

struct kernel_entry {
    uint64_t sandbox;
    uint32_t number; /* of the process in its sandbox; 0 is the first */
    uint32_t uid;
    int fds[KERNEL_FDS_];
    int procs[PROCS_FDS];
    unsigned nprocs;
    int proc_dir; /* O_PATH of the nursery's /proc: the sandbox's is read-only */
    const void *filter;
    size_t filter_len;
};

/* After fork, in the child. On success the process is confined: its descriptors are 0, 1, 2 and
 * KERNEL_CTL_FD. On failure the caller says so on fds[KERNEL_CTL] and leaves. */
int kernel_enter(struct kernel_entry *k, struct err *e);

/* The limits that a process can only set on itself, where they are not 0; control groups do the
 * rest. */
int kernel_limit(const struct limits *l, struct err *e);
