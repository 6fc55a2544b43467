/* See chan.h. A channel that comes too late for this turn waits in a list, the first to wait first,
 * and its socket is not watched meanwhile. At the end of the next turn the list is read from its
 * front, until that turn's time is spent as well. So each is read in the end, however much the
 * others send. */

#include "wire/chan_share.h"

#include "base/clock.h"

static bool is_spent(struct chan_share *s) {
    uint64_t turn = loop_turn(s->loop);
    if (s->turn != turn) {
        s->turn = turn;
        s->spent_ns = 0;
    }
    return s->spent_ns >= s->turn_ns;
}

static void wait_for_turn(struct chan_share *s, struct chan *c) {
    if (c->waits)
        return;
    c->waits = true;
    c->next_waiting = NULL;
    *(s->last ? &s->last->next_waiting : &s->first) = c;
    s->last = c;
    chan_update(c);
    loop_defer(s->loop, &s->go_on);
}

static void stop_waiting(struct chan_share *s, struct chan *c) {
    struct chan *before = NULL;
    for (struct chan *at = s->first; at != c; at = at->next_waiting)
        before = at;
    *(before ? &before->next_waiting : &s->first) = c->next_waiting;
    if (s->last == c)
        s->last = before;
    c->waits = false;
    chan_update(c);
}

bool chan_share_may_read(struct chan *c) {
    if (!c->share || !is_spent(c->share))
        return true;
    wait_for_turn(c->share, c);
    return false;
}

void chan_share_spend(struct chan_share *s, uint64_t since_ns) {
    (void)is_spent(s);
    s->spent_ns += now_ns() - since_ns;
}

static void share_on_go_on(struct deferred *d) {
    struct chan_share *s = d->arg;
    while (s->first && !is_spent(s)) {
        struct chan *c = s->first;
        stop_waiting(s, c);
        chan_pump(c);
    }
    if (s->first)
        loop_defer(s->loop, d);
}

void chan_set_share(struct chan *c, struct chan_share *s) {
    if (c->share && c->waits)
        stop_waiting(c->share, c);
    c->share = s;
}

void chan_share_init(struct chan_share *s, struct loop *l, uint64_t turn_ns) {
    *s = (struct chan_share){.loop = l, .turn_ns = turn_ns};
    s->go_on = (struct deferred){.fn = share_on_go_on, .arg = s};
}
