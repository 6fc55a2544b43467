#pragma once
/* The operator's words for host directories: HOST:PATH or HOST:PATH:rw for one that every live
 * sandbox sees in its workspace, DIR or DIR:rw for one that a request may ask for. */

#include "base/err.h"

#include <stdbool.h>

#define MOUNTS_MAX     16
#define MOUNT_HOST_MAX 255 /* bytes */
#define MOUNT_PATH_MAX 200
/* In the directory of a tenant's profile: what its sandboxes see at ROOT_TREE. */
#define TREE_FILES "files"

struct mount_words {
    char host[MOUNT_HOST_MAX + 1]; /* absolute */
    char path[MOUNT_PATH_MAX + 1]; /* relative to the workspace, without "." and ".." */
    bool writable;
};

struct allow_words {
    char host[MOUNT_HOST_MAX + 1]; /* absolute, without "." and "..", not the root */
    bool writable;
};

int allow_words_parse(const char *text, struct allow_words *ret, struct err *e);
/* What of an absolute path lies below that directory, "" for itself; NULL when it is not there, or
 * has parts that are empty, "." or "..". */
const char *allow_words_below(const struct allow_words *a, const char *path);

/* Whether it is a path below the workspace of at most MOUNT_PATH_MAX bytes. */
bool mount_path_is_good(const char *path);
int mount_words_parse(const char *text, struct mount_words *ret, struct err *e);
/* Whether one of the two paths is, or is in, the other. */
bool mount_words_clash(const struct mount_words *a, const struct mount_words *b);
