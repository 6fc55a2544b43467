#pragma once
/* Why a set-up step failed: from a bare errno to the reason an operator needs.
 *
 * The kernel says EPERM for a dozen reasons. Each rule looks at the machine (sysctls, the container
 * we may be in, limits) and speaks only when what it finds explains the failure.
 *
 * Call it in the process that stays outside, with the error that the child sent: inside a new user
 * namespace user.max_* shows that namespace's own values. Needs no memory, works after fork. */

#include "base/err.h"

#include <stdbool.h>

enum diagnose_step {
    DIAGNOSE_CLONE_USER,
    DIAGNOSE_CLONE_PID,
    DIAGNOSE_CLONE_MOUNT,
    DIAGNOSE_CLONE_NET,
    DIAGNOSE_CLONE_IPC,
    DIAGNOSE_CLONE_UTS,
    DIAGNOSE_CLONE_CGROUP,
    DIAGNOSE_WRITE_UID_MAP,
    DIAGNOSE_MOUNT_PROC,
    DIAGNOSE_MOUNT_BIND, /* and any other mount but proc */
    DIAGNOSE_SECCOMP_LOAD,
    DIAGNOSE_SECCOMP_LISTEN,
    DIAGNOSE_CGROUP_WRITE,
    DIAGNOSE_FORK,
};

struct diagnosis {
    char cause[160]; /* what was found */
    char fix[240];   /* the exact command or setting */
};

/* True when the state of the machine explains the failure; *ret is written only then. */
bool diagnose_find(enum diagnose_step step, int errnum, struct diagnosis *ret);

/* Appends " (cause; fix)" to e->text when e->code is explained; else leaves e alone. */
void diagnose(struct err *e, enum diagnose_step step);

/* "docker", "podman", "kubernetes", "container" (some other one), or "" outside of any. */
const char *diagnose_container(void);
