#pragma once
/* A limit of processor time: who has one is looked at when it could be reached at the earliest. The
 * kernel counts the time, and tells nobody. */

#include "loop/loop.h"

struct cpu_limit {
    struct timer timer;
    struct loop *loop; /* borrowed */
    uint64_t limit_us;
    uint32_t percent; /* of a core that may be used at a time */
    uint64_t (*used_us)(void *arg);
    void (*on_reached)(void *arg);
    void *arg;
};

/* From now on; the callbacks and arg are set. 0 seconds: there is no limit. */
void cpu_limit_begin(struct cpu_limit *c, struct loop *l, uint32_t seconds, uint32_t percent);
/* Also when it was not begun. */
void cpu_limit_stop(struct cpu_limit *c);
