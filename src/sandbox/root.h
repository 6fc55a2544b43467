#pragma once
/* The file system that sandboxes of one profile see: built once per nursery, shared read-only by
 * all its sandboxes, each of which adds private mounts of its own (root_private). */

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define ROOT_PYLIB "/run/cloche" /* where the cell and the zygote module are, inside */
#define ROOT_BIN                                                                                   \
    ROOT_PYLIB "/bin" /* python and python3, where the interpreter's own place lacks them */

#define ROOT_TOOLS                                                                                 \
    ROOT_PYLIB "/tools" /* for packages that a sandbox installs: py/cell/packages.py */
#define ROOT_WHEELS ROOT_PYLIB "/wheels"

/* What a sandbox has of one of its tenant's profiles (I_TREE): an empty directory until then. */
#define ROOT_TREE ROOT_PYLIB "/profile"

/* A directory of the host, in the workspace of every sandbox or of those that ask for it. */
struct root_mount {
    const char *host;
    const char *path; /* relative to the workspace, without "." and ".."; NULL: see root_allowed */
    bool writable;
};

struct root_plan {
    const char *const *binds; /* host paths shown read-only at the same place */
    unsigned nbinds;
    const char *libexec;             /* host directory of cloche_zygote.abi3.so */
    const char *pylib;               /* host directory of the cell package */
    const char *python;              /* the interpreter that ROOT_BIN has under its usual names */
    const struct root_mount *mounts; /* kept aside, for root_private */
    unsigned nmounts;
    const struct root_mount *allowed; /* kept aside likewise, for root_allowed */
    unsigned nallowed;
    const char *wheels; /* host directory that is at ROOT_WHEELS, or "" */
    const char *trees;  /* host directory that is kept aside, for root_trees, or "" */
    uint32_t memory_mb; /* what /proc/meminfo says to a sandbox that has the usual limit */
};

/* In a fresh mount namespace that is ours alone: builds the tree, makes it "/" and drops the old
 * one. /proc is still the host's (a new /proc can only be mounted where a full one is visible). */
int root_build(const struct root_plan *p, struct err *e);

struct root_private {
    uint32_t uid;                    /* owner of the writable places, as the mounter counts */
    uint32_t disk_mb;                /* size of /workspace, /tmp and /dev/shm together */
    uint32_t disk_files;             /* inodes of all */
    uint32_t terminals;              /* that programs may open themselves */
    const struct root_mount *mounts; /* those of the root_plan */
    unsigned nmounts, nallowed;
    bool has_trees;
};
/* Before root_private, after which it cannot be found any more: the descriptor of that one of the
 * plan's `allowed`. */
int root_allowed(unsigned i, int *ret_fd, struct err *e);
int root_trees(int *ret_fd, struct err *e);
/* In a sandbox's own mount, pid and network namespaces: /workspace, /tmp, /dev/shm, /dev/pts,
 * /proc. */
int root_private(const struct root_private *p, struct err *e);
/* Another size for the tmpfs of a live sandbox. */
int root_resize(const struct root_private *p, struct err *e);
