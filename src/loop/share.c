/* See share.h. Time is measured from the outermost beginning to its end: work that leads to more
 * work of its kind counts once. Nobody passes those who wait, so each has its turn in the end,
 * however much the others ask for. At the end of a batch the queue is served from its front. */

#include "loop/share.h"

#include "base/clock.h"

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

void loop_share_wait(struct loop_share *s, struct loop_sharer *who) {
    if (who->waits_for)
        return;
    who->waits_for = s;
    who->before = s->last;
    who->behind = NULL;
    *(s->last ? &s->last->behind : &s->first) = who;
    s->last = who;
    loop_defer(s->loop, &s->go_on);
}

void loop_share_leave(struct loop_sharer *who) {
    struct loop_share *s = who->waits_for;
    if (!s)
        return;
    *(who->before ? &who->before->behind : &s->first) = who->behind;
    *(who->behind ? &who->behind->before : &s->last) = who->before;
    who->waits_for = NULL;
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
        struct loop_sharer *who = s->first;
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
