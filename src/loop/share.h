#pragma once
/* A share of each turn of the loop, for one kind of work that many may ask for at once: to read
 * what kernels say, or what programs print; to send to WebSockets. All of that kind together take
 * no more of a turn than the share; who comes too late waits for one of the next turns, and the
 * loop does not sleep meanwhile. Owners take turns, however many sharers each of them has.
 *
 * A share and its sharers are embedded in their owners; the share outlives the sharers, and a
 * sharer leaves before its owner is freed. */

#include "loop/loop.h"

struct share_lane;

struct loop_share {
    struct loop *loop;       /* borrowed */
    uint64_t turn_ns;        /* for a turn */
    uint64_t turn, spent_ns; /* in that turn, */
    uint64_t began_ns;       /* and since then, if `depth` is not 0 */
    unsigned depth;
    struct share_lane *first, *last; /* owned: whose turn it is, and the others */
    struct deferred go_on;
};

struct loop_sharer {
    void (*fn)(struct loop_sharer *who); /* its turn has come; the time that it takes counts */
    void *arg;
    uint64_t owner;               /* of crew_owner(), say; 0: nobody, who is an owner, too */
    struct loop_share *waits_for; /* borrowed; NULL: it does not wait */
    struct share_lane *lane;      /* borrowed: where it waits, between */
    struct loop_sharer *before, *behind;
};

void loop_share_init(struct loop_share *s, struct loop *l, uint64_t turn_ns);
/* At the end of this batch or of one of the next: after all of its owner's who wait already, and
 * once, however often it is asked for. */
void loop_share_wait(struct loop_share *s, struct loop_sharer *who);
/* It does not wait any more. */
void loop_share_leave(struct loop_sharer *who);

/* For work that is done at once if it can be. True: until loop_share_end the time counts. False:
 * the share is spent, or others wait, and so does it. */
bool loop_share_begin(struct loop_share *s, struct loop_sharer *who);
void loop_share_end(struct loop_share *s);
/* For work of several steps, between two of them: the rest is for another turn. */
bool loop_share_is_spent(struct loop_share *s);
/* Inside of work that somebody else finishes in this turn: so long will that take, about. */
void loop_share_charge(struct loop_share *s, uint64_t ns);
