#pragma once
/* Requests to a kernel that are too large for a message: files in memory that the kernel reads. It
 * is hostile, and may keep the descriptor for as long as its sandbox lives; so the file is never
 * its own. The server empties each when the kernel has no more to answer, an answer to input() when
 * the next one comes, and counts them in the sandbox's charge until then. What a server that was
 * killed has lent, nobody can empty: it counts until the sandbox ends. */

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct kernel;

struct lent {
    struct lent *next; /* a younger one */
    int fd;            /* owned */
    size_t len;
    bool is_answer; /* to input() */
};

/* Such a file; may be made beside the loop. */
int lent_file(const void *data, size_t len, int *ret_fd, struct err *e);
/* It is the kernel's to read from now on. Takes it, and returns what is borrowed until the next
 * call for this kernel. */
int lent_add(struct kernel *k, int *fd, size_t len, bool is_answer);
/* Whether an answer of so many bytes may be given to it. Kinds "stdin_full", "memory_budget". */
int lent_fits(const struct kernel *k, size_t len, struct err *e);
/* Those that are left, if the kernel has nothing to answer. */
void lent_back(struct kernel *k);
/* All of them: the kernel's process has ended. */
void lent_end(struct kernel *k);
