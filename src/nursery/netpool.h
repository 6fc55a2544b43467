#pragma once
/* Network namespaces, kept for reuse: one costs half a millisecond to make (and as much again to
 * destroy), nine microseconds to enter. A namespace is used again only if nothing can be told from
 * it: every counter and socket table reads as on the day it was made. */

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define NETPOOL_MAX 64

struct netpool {
    int spare[NETPOOL_MAX]; /* owned */
    unsigned nspare;
    char *fresh; /* owned: what an unused namespace reads like */
    char *now;   /* scratch of the same size */
    unsigned long made, reused, dropped;
};

int netpool_init(struct netpool *p, struct err *e);
void netpool_done(struct netpool *p);
/* The calling process is in a clean namespace afterwards; *ret_fd names it. */
int netpool_enter(struct netpool *p, int *ret_fd, struct err *e);
/* All that was in it is dead. Takes the descriptor. */
void netpool_give_back(struct netpool *p, int *fd);
