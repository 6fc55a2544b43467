/* See rest.h. Some work is done at once; whoever goes on like that rests for some times as long as
 * the work took, so that it has about a fifth of a processor, and the less, the more sandboxes of
 * one tenant rest. */

#include "engine/core/rest.h"

#include "base/clock.h"
#include "base/list.h"
#include "engine/core/engine.h"

#include <string.h>

#define REST    4          /* times as long as the work took */
#define AT_ONCE 200000000u /* ns of work without any rest */

bool rest_is_on(const struct rest *r) {
    return r->timer.place;
}

static void rest_leave(struct rest *r) {
    (void)LIST_REMOVE(&r->engine->resting, r, next);
}

static void rest_on_timer(struct timer *t) {
    struct rest *r = t->arg;
    rest_leave(r);
    r->tired_ns = AT_ONCE;
    r->tired_at_ns = now_ns();
    r->on_rested(r);
}

void rest_end(struct rest *r) {
    if (!rest_is_on(r))
        return;
    loop_timer_stop(r->engine->loop, &r->timer);
    rest_leave(r);
}

static unsigned count_others(const struct rest *of) {
    unsigned n = 0;
    for (const struct rest *r = of->engine->resting; r; r = r->next)
        n += r != of && strcmp(r->tenant, of->tenant) == 0;
    return n;
}

bool rest_after(struct rest *r, uint64_t cpu_ns) {
    uint64_t now = now_ns(), rested = (now - r->tired_at_ns) / REST;
    r->tired_ns = (r->tired_ns > rested ? r->tired_ns - rested : 0) + cpu_ns;
    r->tired_at_ns = now;
    if (r->tired_ns <= AT_ONCE)
        return false;
    if (!rest_is_on(r))
        LIST_PUSH(&r->engine->resting, r, next);
    r->timer.fn = rest_on_timer;
    r->timer.arg = r;
    loop_timer(r->engine->loop, &r->timer,
               now + (r->tired_ns - AT_ONCE) * REST * (1 + count_others(r)));
    return true;
}
