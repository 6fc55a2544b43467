#pragma once
/* Stored files that are copies of others: what a program made. Holes stay holes, on the disk; they
 * count as bytes for the bounds. */

#include "engine/store/upload.h"

struct crew;
struct store_copy;

struct store_copy_request {
    const char *tenant, *name; /* borrowed for the call */
    int *fd;                   /* taken: a regular file, of which the first `size` bytes count */
    uint64_t size;
    /* Once, in the loop, unless it is left before: the entry (borrowed), or why there is none. */
    void (*done)(void *arg, const struct store_entry *entry, const struct err *why);
    void *arg;
};

/* At once: for small files. ret may be NULL. */
int store_copy(struct store *s, const struct store_copy_request *q, struct store_entry *ret,
               struct err *e);
/* Beside the loop. */
int store_copy_begin(struct store *s, struct crew *crew, const struct store_copy_request *q,
                     struct store_copy **ret, struct err *e);
/* Nobody wants it any more. NULL is none. */
void store_copy_leave(struct store_copy *c);
