/* See kept.h. The first bytes are always kept: whoever prints as much as programs do is not cut
 * because the machine is full, and a few words are heard beside whatever others print. More than
 * that is kept only while the memory budget has room. */

#include "engine/core/kept.h"

#include "engine/core/budget.h"

#include <stdbool.h>
#include <stddef.h>

#define FREE_BYTES (16u << 20)
#define STEP_BITS  20 /* the budget is asked once for each MiB */

static bool budget_has_room(const struct kept *k, uint64_t more) {
    struct err e;
    uint64_t after = k->bytes + more;
    if (!k->engine || after <= FREE_BYTES || k->bytes >> STEP_BITS == after >> STEP_BITS)
        return true;
    return budget_fits(k->engine, more, &e) == 0;
}

uint64_t kept_room(struct kept *k, uint64_t has, uint64_t want) {
    uint64_t least = has < KEPT_LEAST ? KEPT_LEAST - has : 0;
    if (want <= least)
        return want;
    if (k->bytes + want > k->most && k->make_room)
        k->make_room(k->arg);
    uint64_t left = k->most > k->bytes ? k->most - k->bytes : 0;
    uint64_t room = want < left ? want : left;
    if (!budget_has_room(k, room))
        room = 0;
    return room > least ? room : least;
}

void kept_count(struct kept *k, uint64_t before, uint64_t now) {
    k->bytes = k->bytes - before + now;
}
