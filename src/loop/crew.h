#pragma once
/* Threads beside the loop, for work that would hold the loop up: parsing a large body, copying a
 * large file. A piece of work touches nothing but what it owns while it is with the crew, and comes
 * back to the loop when it is through.
 *
 * Work is done in slices: `slice` returns true when there is more to do, and the next piece of work
 * gets its turn before that. So a long piece does not hold up the short ones behind it. */

#include "loop/loop.h"

#include <stdbool.h>

struct crew;

struct work {
    bool (*slice)(struct work *w); /* in a thread; about a millisecond or a few */
    void (*done)(struct work *w);  /* in the loop; may free the work */
    void *arg;
    struct work *next; /* the crew's */
};

int crew_new(struct loop *l, unsigned threads, struct crew **ret, struct err *e);
/* Waits for the slices at hand. Work that is not through is dropped: its `done` is not called. */
void crew_free(struct crew *c);
/* `w` stays with the crew until `done`; there is no taking it back. */
void crew_add(struct crew *c, struct work *w);
