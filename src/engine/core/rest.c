/* See rest.h. Some work is done at once; whoever goes on like that rests for some times as long as
 * the work took. What is forgiven with time, and so the rest, is shared by all of a tenant that we
 * worked for lately: together they have about a fifth of a processor, however many they are. */

#include "engine/core/rest.h"

#include "base/clock.h"
#include "base/list.h"
#include "engine/core/engine.h"

#include <string.h>

#define REST    4          /* times as long as the work took */
#define AT_ONCE 200000000u /* ns of work without any rest */
#define GRAIN   2000000u   /* of work, for which it is worth to rest */
#define LATELY  1000000000u
#define COUNT   50000000u /* ns between two counts of who shares */

bool rest_is_on(const struct rest *r) {
    return r->timer.place;
}

static void rest_on_timer(struct timer *t) {
    struct rest *r = t->arg;
    r->tired_ns = AT_ONCE;
    r->tired_at_ns = now_ns();
    r->on_rested(r);
}

void rest_end(struct rest *r) {
    loop_timer_stop(r->engine->loop, &r->timer);
    if (r->listed)
        (void)LIST_REMOVE(&r->engine->resting, r, next);
    r->listed = false;
}

/* Of the same tenant, with itself. Those that were quiet for a while leave the list. */
static unsigned count_sharers(struct rest *of, uint64_t now) {
    unsigned n = 0;
    for (struct rest **at = &of->engine->resting; *at;) {
        struct rest *r = *at;
        if (!rest_is_on(r) && now - r->tired_at_ns > LATELY) {
            r->listed = false;
            (void)LIST_POP(at, next);
            continue;
        }
        n += strcmp(r->tenant, of->tenant) == 0;
        at = &r->next;
    }
    return n;
}

/* Times as long as the work, until it is forgiven. */
static uint64_t times(struct rest *r, uint64_t now) {
    if (!r->listed)
        LIST_PUSH(&r->engine->resting, r, next);
    r->listed = true;
    if (!r->sharers || now - r->counted_ns > COUNT) {
        r->sharers = count_sharers(r, now);
        r->counted_ns = now;
    }
    return (uint64_t)REST * r->sharers;
}

bool rest_after(struct rest *r, uint64_t cpu_ns) {
    uint64_t now = now_ns(), since_ns = now - r->tired_at_ns;
    r->tired_at_ns = now;
    uint64_t n = times(r, now), rested = since_ns / n;
    r->tired_ns = (r->tired_ns > rested ? r->tired_ns - rested : 0) + cpu_ns;
    if (r->tired_ns <= AT_ONCE + GRAIN)
        return false;
    r->timer.fn = rest_on_timer;
    r->timer.arg = r;
    loop_timer(r->engine->loop, &r->timer, now + (r->tired_ns - AT_ONCE) * n);
    return true;
}
