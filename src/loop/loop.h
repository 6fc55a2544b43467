#pragma once
/* The event loop: descriptors, timers, things to do at the end of a batch. One per process, single
 * threaded. Watches, timers and deferred calls are embedded in their owners, who outlive them or
 * take them out first; a callback may take out any watch, its own included, and frees its own
 * object only through loop_defer. */

#include "base/err.h"
#include "base/histogram.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;

struct watch {
    int fd; /* borrowed; -1 when not watched */
    uint32_t events;
    void (*fn)(struct watch *w, uint32_t events);
    void *arg;
};
#define WATCH_INIT                                                                                 \
    { .fd = -1 }

struct timer {
    uint64_t at_ns;
    size_t place; /* in the heap, 1-based; 0 when not set */
    void (*fn)(struct timer *t);
    void *arg;
};

struct deferred {
    struct deferred *next;
    bool queued;
    void (*fn)(struct deferred *d);
    void *arg;
};

int loop_new(struct loop **ret, struct err *e);
void loop_free(struct loop *l);

int loop_watch(struct loop *l, struct watch *w, int fd, uint32_t events, struct err *e);
/* The same for an epoll descriptor, which a library has: one of them for each loop. It is called
 * after the others of its turn. */
void loop_watch_epoll(struct loop *l, struct watch *w, int fd);
int loop_rewatch(struct loop *l, struct watch *w, uint32_t events, struct err *e);
void loop_unwatch(struct loop *l, struct watch *w);

/* Sets or moves the timer: to so long from now (0: in this turn or the next), or to an absolute
 * monotonic time (now_ns). */
void loop_timer_in_ms(struct loop *l, struct timer *t, uint64_t ms);
void loop_timer(struct loop *l, struct timer *t, uint64_t at_ns);
void loop_timer_stop(struct loop *l, struct timer *t);
/* At the end of the batch, in the order in which they came: what an object asked for is done before
 * it is freed. What a deferred call defers, itself included, comes at the end of the next batch. */
void loop_defer(struct loop *l, struct deferred *d);

/* Runs until loop_stop; may be called again after it. */
int loop_run(struct loop *l, struct err *e);
void loop_stop(struct loop *l);

/* The number of this turn. */
uint64_t loop_turn(const struct loop *l);

/* The turns so far. A turn is what the loop does between two waits; everybody else waits for that
 * long. `cpu` leaves out the time in which the loop had no processor, or slept in a call. */
struct loop_turns {
    struct histogram wall, cpu;
};
const struct loop_turns *loop_turns(const struct loop *l);
/* From now on they are measured, on this thread: a system call in each turn. */
void loop_measure(struct loop *l);

/* Blocks the signals and returns a signalfd for them. */
int loop_signals(const int *signals, size_t n, int *ret_fd, struct err *e);
