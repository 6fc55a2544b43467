#pragma once
/* Mounting, with descriptors instead of paths where it matters (the new mount API, kernel 5.12). */

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum mount_flag {
    MOUNT_RO = 1,
    MOUNT_NODEV = 2,
    MOUNT_NOEXEC = 4,
    /* nosuid is always set */
};

/* A detached copy of what is mounted at `path`, with all below it. *ret_fd is a mount that is
 * nowhere yet. */
int mount_clone(const char *path, unsigned flags, int *ret_fd, struct err *e);
/* The same of the directory behind a descriptor. */
int mount_clone_fd(int dir, unsigned flags, int *ret_fd, struct err *e);
/* Puts a detached mount at dirfd/path, which exists. */
int mount_attach(int mount_fd, int dirfd, const char *path, struct err *e);
/* On the directory behind a descriptor. */
int mount_attach_fd(int mount_fd, int dir, struct err *e);
/* A new file system of its own at `path`; data are its options. */
int mount_fs(const char *type, const char *path, unsigned flags, const char *data, struct err *e);
/* Sets flags on what is mounted at `path`. */
int mount_set(const char *path, unsigned flags, bool recursive, struct err *e);
