#pragma once
/* Requests to a kernel that are too large for a message: files in memory that the kernel reads. It
 * is hostile, and may keep the descriptor for as long as its sandbox lives; so the file is never
 * its own. The server empties each when the kernel has no more to answer, and counts them in the
 * sandbox's charge until then. */

#include "base/err.h"

#include <stddef.h>

struct kernel;

struct lent {
    struct lent *next; /* a younger one */
    int fd;            /* owned */
    size_t len;
};

/* Such a file; may be made beside the loop. */
int lent_file(const void *data, size_t len, int *ret_fd, struct err *e);
/* It is the kernel's to read from now on. Takes it, and returns what is borrowed until the next
 * call for this kernel. */
int lent_add(struct kernel *k, int *fd, size_t len);
/* Those that are left, if the kernel has nothing to answer. */
void lent_back(struct kernel *k);
/* All of them: the kernel's process has ended. */
void lent_end(struct kernel *k);
