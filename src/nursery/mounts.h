#pragma once
/* Host directories for the workspaces of a profile's live sandboxes: of all, and of those that ask.
 */

#include "config/config.h"
#include "sandbox/root.h"
#include "wire/mounts.h"

/* It stays where it is read to. */
struct mounts {
    struct mount_words words[MOUNTS_MAX];
    struct root_mount items[MOUNTS_MAX]; /* borrowed from the words */
    unsigned n;
    struct allow_words allowed_words[MOUNTS_MAX];
    struct root_mount allowed[MOUNTS_MAX]; /* borrowed likewise */
    unsigned nallowed;
};

int mounts_read(const struct config_profile *p, struct mounts *ret, struct err *e);
