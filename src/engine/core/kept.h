#pragma once
/* What is kept of what the programs of one sandbox printed and showed. It is the server's memory,
 * so it counts in the sandbox's charge (budget.c) and has a bound for all of them together. */

#include <stdint.h>

struct engine;

struct kept {
    struct engine *engine; /* borrowed, or NULL: the memory budget is not asked */
    uint64_t bytes, most;
    unsigned shown; /* results and displays among it */
    /* Or NULL: forgets what can be forgotten, if so many bytes more would be too much. */
    void (*make_room)(void *arg);
    void *arg;
};

#define KEPT_LEAST (64u << 10) /* bytes of each stream or cell that always find room */
/* How many of `want` bytes more may be kept of one that has `has`. */
uint64_t kept_room(struct kept *k, uint64_t has, uint64_t want);
/* Something of that account had `before` bytes, and has `now`. */
void kept_count(struct kept *k, uint64_t before, uint64_t now);
