#pragma once
/* Paths of the workspace, resolved by openat2: no path leads out of it, whatever hostile processes
 * do to the tree meanwhile. All of these return a descriptor, or -1 and errno. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct place {
    int workspace; /* borrowed */
    uint32_t uid;  /* the sandbox's */
};

/* The last part is not followed when it is a symlink; "" is the workspace itself. */
int beneath_open(const struct place *p, const char *path, uint64_t flags, mode_t mode);
/* The directory above the last part, only for the …at calls; links that stay in the workspace are
 * followed. With `make` it and those above it are made; they belong to the sandbox. *ret_name is
 * the last part. */
int beneath_parent(const struct place *p, const char *path, bool make, const char **ret_name);
/* A name in `dir` that nobody has, for what is renamed afterwards. */
void beneath_name(char ret[32]);
