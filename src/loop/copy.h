#pragma once
/* Regular files, copied or compared beside the loop (crew.h) in slices. A copy has holes where the
 * source has some: what costs the source nothing costs the copy nothing.
 *
 * SECURITY: somebody hostile may still write to the source. No more than `size` bytes are looked
 * at, and nothing here blocks on a regular file. */

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct copy;
struct crew;

#define COPY_SMALL (64u << 10) /* bytes that may as well be copied at once */

/* At once, from the start to the start; the source must have so many bytes. An error's code is that
 * of the call that failed. The position of `from` may change. */
int copy_now(int from, int to, uint64_t size, struct err *e);

/* The same beside the loop. Takes both descriptors, `done` (in the loop, once) tells how it went:
 * NULL when all is copied. */
struct copy *copy_begin(struct crew *crew, int *from, int *to, uint64_t size,
                        void (*done)(void *arg, const struct err *why), void *arg);

/* Whether the first `size` bytes are the same: `done` gets NULL if so. Takes both descriptors. */
struct copy *compare_begin(struct crew *crew, int *a, int *b, uint64_t size,
                           void (*done)(void *arg, const struct err *why), void *arg);

/* Nobody wants it any more: it stops soon, and `done` is not called. NULL is none. */
void copy_leave(struct copy *c);
