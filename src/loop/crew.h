#pragma once
/* Threads beside the loop, for work that would hold the loop up: parsing a large body, copying a
 * large file. A piece of work touches nothing but what it owns while it is with the crew, and comes
 * back to the loop when it is through.
 *
 * Work is done in slices: `slice` returns true when there is more to do, and the next piece of work
 * gets its turn before that. So a long piece does not hold up the short ones behind it.
 *
 * Owners take turns, however much work each of them has. Slices that are long are never at all
 * threads at once, so that the short ones always find one. */

#include "loop/loop.h"

#include <stdbool.h>

struct crew;

#define CREW_LONG (1u << 20) /* bytes of JSON: to read more makes a long slice */

struct work {
    bool (*slice)(struct work *w); /* in a thread; about a millisecond or a few */
    void (*done)(struct work *w);  /* in the loop; may free the work */
    void *arg;
    uint64_t owner;    /* of crew_owner(); 0: nobody, who is an owner, too */
    bool is_long;      /* its slices take longer than that */
    struct work *next; /* this and what follows: the crew's */
    uint64_t number;
};

/* What stands for the one with that name, or NULL. */
uint64_t crew_owner(const char *name);

int crew_new(struct loop *l, unsigned threads, struct crew **ret, struct err *e);
/* Waits for the slices at hand. Work that is not through is dropped: its `done` is not called. */
void crew_free(struct crew *c);
/* `w` stays with the crew until `done`; there is no taking it back. */
void crew_add(struct crew *c, struct work *w);
/* Closes a large file there, and others at once: whoever closes a file last frees all of it. Takes
 * the descriptor. A short slice may call it, too. */
void crew_close(struct crew *c, int *fd);
/* Many of them, of whatever kind, in slices. Takes `fds`, which is on the heap. */
void crew_close_all(struct crew *c, int *fds, unsigned n);
/* The same for a file that others may have, too: it is emptied before. */
void crew_empty(struct crew *c, int *fd);
