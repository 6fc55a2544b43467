#pragma once
/* The operator's words for a host directory that live sandboxes see in their workspace:
 * HOST:PATH, or HOST:PATH:rw. */

#include "base/err.h"

#include <stdbool.h>

#define MOUNTS_MAX     16
#define MOUNT_HOST_MAX 255 /* bytes */
#define MOUNT_PATH_MAX 200

struct mount_words {
    char host[MOUNT_HOST_MAX + 1]; /* absolute */
    char path[MOUNT_PATH_MAX + 1]; /* relative to the workspace, without "." and ".." */
    bool writable;
};

int mount_words_parse(const char *text, struct mount_words *ret, struct err *e);
/* Whether one of the two paths is, or is in, the other. */
bool mount_words_clash(const struct mount_words *a, const struct mount_words *b);
