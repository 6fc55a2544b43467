/* See share.h. Time is measured from the outermost beginning to its end: work that leads to more
 * work of its kind counts once. Nobody passes those of its owner who wait, so each has its turn in
 * the end, however much the others ask for. Whoever waits does so in the lane of its owner; at the
 * end of a batch the first lane's first is served, and the lane becomes the last. */

#include "loop/share.h"

#include "base/buf.h"
#include "base/clock.h"

#include <stdlib.h>

struct share_lane {
    uint64_t owner;
    struct share_lane *before, *behind; /* other owners' */
    struct loop_sharer *first, *last;
};

bool loop_share_is_spent(struct loop_share *s) {
    uint64_t turn = loop_turn(s->loop);
    if (s->turn != turn) {
        s->turn = turn;
        s->spent_ns = 0;
    }
    return s->spent_ns + (s->depth ? now_ns() - s->began_ns : 0) >= s->turn_ns;
}

static void enter(struct loop_share *s) {
    if (s->depth++ == 0)
        s->began_ns = now_ns();
}

static void lane_append(struct loop_share *s, struct share_lane *lane) {
    lane->before = s->last;
    lane->behind = NULL;
    *(s->last ? &s->last->behind : &s->first) = lane;
    s->last = lane;
}

static void lane_take_out(struct loop_share *s, const struct share_lane *lane) {
    *(lane->before ? &lane->before->behind : &s->first) = lane->behind;
    *(lane->behind ? &lane->behind->before : &s->last) = lane->before;
}

static struct share_lane *lane_of(struct loop_share *s, uint64_t owner) {
    struct share_lane *lane = s->first;
    while (lane && lane->owner != owner)
        lane = lane->behind;
    if (!lane) {
        lane = xcalloc(1, sizeof *lane);
        lane->owner = owner;
        lane_append(s, lane);
    }
    return lane;
}

void loop_share_wait(struct loop_share *s, struct loop_sharer *who) {
    if (who->waits_for)
        return;
    struct share_lane *lane = lane_of(s, who->owner);
    who->waits_for = s;
    who->lane = lane;
    who->before = lane->last;
    who->behind = NULL;
    *(lane->last ? &lane->last->behind : &lane->first) = who;
    lane->last = who;
    loop_defer(s->loop, &s->go_on);
}

void loop_share_leave(struct loop_sharer *who) {
    struct loop_share *s = who->waits_for;
    struct share_lane *lane = who->lane;
    if (!s)
        return;
    *(who->before ? &who->before->behind : &lane->first) = who->behind;
    *(who->behind ? &who->behind->before : &lane->last) = who->before;
    who->waits_for = NULL;
    if (lane->first)
        return;
    lane_take_out(s, lane);
    free(lane);
}

bool loop_share_begin(struct loop_share *s, struct loop_sharer *who) {
    if (loop_share_is_spent(s) || (s->first && s->depth == 0)) {
        loop_share_wait(s, who);
        return false;
    }
    enter(s);
    return true;
}

void loop_share_end(struct loop_share *s) {
    if (--s->depth == 0)
        s->spent_ns += now_ns() - s->began_ns;
}

void loop_share_charge(struct loop_share *s, uint64_t ns) {
    s->spent_ns += ns;
}

static void share_on_go_on(struct deferred *d) {
    struct loop_share *s = d->arg;
    while (s->first && !loop_share_is_spent(s)) {
        struct share_lane *lane = s->first;
        struct loop_sharer *who = lane->first;
        if (lane->behind && who->behind) { /* the next owner's turn comes before its next one */
            lane_take_out(s, lane);
            lane_append(s, lane);
        }
        loop_share_leave(who);
        enter(s);
        who->fn(who);
        loop_share_end(s);
    }
    if (s->first)
        loop_defer(s->loop, d);
}

void loop_share_init(struct loop_share *s, struct loop *l, uint64_t turn_ns) {
    *s = (struct loop_share){.loop = l, .turn_ns = turn_ns};
    s->go_on = (struct deferred){.fn = share_on_go_on, .arg = s};
}
