/* See cpu_limit.h. */

#include "engine/core/cpu_limit.h"

#include "base/clock.h"

#define LOOK_NS 20000000u /* at least between two looks */

static void look_in(struct cpu_limit *c, uint64_t left_us) {
    uint64_t wait_ns = left_us * 1000u * 100u / (c->percent < 100 ? 100 : c->percent);
    loop_timer(c->loop, &c->timer, now_ns() + (wait_ns < LOOK_NS ? LOOK_NS : wait_ns));
}

static void cpu_limit_on_look(struct timer *t) {
    struct cpu_limit *c = t->arg;
    uint64_t used_us = c->used_us(c->arg);
    if (used_us >= c->limit_us)
        c->on_reached(c->arg);
    else
        look_in(c, c->limit_us - used_us);
}

void cpu_limit_begin(struct cpu_limit *c, struct loop *l, uint32_t seconds, uint32_t percent) {
    c->loop = l;
    c->limit_us = (uint64_t)seconds * 1000000u;
    c->percent = percent;
    c->timer = (struct timer){.fn = cpu_limit_on_look, .arg = c};
    if (seconds)
        look_in(c, c->limit_us);
}

void cpu_limit_stop(struct cpu_limit *c) {
    if (c->loop)
        loop_timer_stop(c->loop, &c->timer);
}
