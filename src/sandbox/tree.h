#pragma once
/* Filling a new root: directories and files below a directory descriptor. */

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Makes the directories above `path` (relative to root), and the last one too if `dir`. */
int tree_make_way(int root, const char *path, bool dir, struct err *e);
/* A file of mode 0644 that holds these bytes; the directories above it are made. */
int tree_put(int root, const char *path, const void *data, size_t len, struct err *e);
int tree_put_text(int root, const char *path, const char *text, struct err *e);
