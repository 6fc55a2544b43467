/* See http_turn.h.
 *
 * SECURITY: the library serves every connection that is ready, one after the other, however many
 * there are. A thousand of them cost their client little, and each may have a request to read, a
 * reply to make and a slice of it to send. So the library gets a share of each turn of the loop.
 * When the share is spent, connections are put off at three places: where bytes are read from the
 * socket (http_read.c), where a head becomes a request (http.c), and where a reply goes on
 * (http_reply.c). They stand in a queue, which nobody may pass. Each turn takes a few from its
 * front. The first of them may finish its work, but for a body in tiny chunks: the library's buffer
 * holds thousands of chunks, and takes 0.5 ms for them. The others may do so while the share lasts:
 * to make a reply may take a millisecond. Then they stand in front again,
 * until they have begun a request.
 *
 * What cannot be put off is the rest of a small reply (HTTP_SMALL), which the library sends by
 * itself. */

#include "http/http_turn.h"

#include "base/clock.h"
#include "base/list.h"
#include "http/internal.h"

#define LIBRARY_NS 2000000u /* of a turn */
#define FRONT      16u      /* connections that leave the queue in a turn */
#define PIECES     500u     /* chunks of a body for one connection in a turn */

/* What was spent counts for one turn of the loop, in which the library may run more than once. */
static bool is_spent(struct http *h) {
    uint64_t turn = loop_turn(h->o.loop);
    if (h->turn != turn) {
        h->turn = turn;
        h->spent_ns = 0;
    }
    return h->spent_ns + (h->began_ns ? now_ns() - h->began_ns : 0) > LIBRARY_NS;
}

void http_turn_begin(struct http *h) {
    (void)is_spent(h);
    h->began_ns = now_ns();
}

void http_turn_end(struct http *h) {
    h->spent_ns += now_ns() - h->began_ns;
    h->began_ns = 0;
}

bool http_turn_has_room(struct http *h) {
    return !h->queue && !is_spent(h);
}

/* Before all with a later ticket. Who comes last has the latest; few have an earlier one. */
static void stand(struct http_conn *c) {
    struct http *h = c->http;
    struct http_conn **at = c->ticket == h->tickets ? h->queue_end : &h->queue;
    while (*at && (*at)->ticket < c->ticket)
        at = &(*at)->behind;
    c->behind = *at;
    *at = c;
    if (!c->behind)
        h->queue_end = &c->behind;
    c->put_off = true;
    MHD_suspend_connection(c->mhd);
    if (!h->next_turn.place)
        loop_timer_in_ms(h->o.loop, &h->next_turn, 0);
}

void http_put_off(struct http_conn *c) {
    if (c->put_off)
        return;
    c->ticket = ++c->http->tickets;
    stand(c);
}

bool http_may_go(struct http_conn *c) {
    struct http *h = c->http;
    uint64_t turn = loop_turn(h->o.loop);
    bool is_called = c->turn == turn;
    if (c->free_turn == turn || ((is_called || !h->queue) && !is_spent(h)))
        return true;
    if (is_called && c->began_turn != turn && !c->put_off)
        stand(c);
    else
        http_put_off(c);
    return false;
}

bool http_may_begin(struct http_conn *c) {
    uint64_t turn = loop_turn(c->http->o.loop);
    if (c->began_turn ==
        turn) /* it has had its turn: this one stood behind another, in a pipeline */
        c->turn = c->free_turn = 0;
    if (!http_may_go(c))
        return false;
    c->began_turn = turn;
    return true;
}

bool http_may_take_piece(struct http_conn *c) {
    uint64_t turn = loop_turn(c->http->o.loop);
    if (c->pieces_turn != turn)
        c->pieces = 0;
    c->pieces_turn = turn;
    if (++c->pieces <= PIECES)
        return true;
    http_put_off(c);
    return false;
}

void http_turn_leave(struct http_conn *c) {
    struct http *h = c->http;
    if (!c->put_off)
        return;
    struct http_conn **at = LIST_FIND(&h->queue, c, behind);
    if (h->queue_end == &c->behind)
        h->queue_end = at;
    (void)LIST_POP(at, behind);
    c->put_off = false;
}

static void call_up(struct http_conn *c) {
    http_turn_leave(c);
    c->turn = loop_turn(c->http->o.loop);
    MHD_resume_connection(c->mhd);
    http_soon(c->http);
}

void http_turn_now(struct http_conn *c) {
    c->free_turn = loop_turn(c->http->o.loop);
    if (c->put_off)
        call_up(c);
}

/* A timer may come in the turn in which it was set. */
static void on_next_turn(struct timer *t) {
    struct http *h = t->arg;
    if (h->queue)
        http_turn_now(h->queue);
    for (unsigned n = 1; h->queue && n < FRONT && !is_spent(h); n++)
        call_up(h->queue);
    if (h->queue)
        loop_timer_in_ms(h->o.loop, t, 0);
}

void http_turn_init(struct http *h) {
    h->queue_end = &h->queue;
    h->next_turn = (struct timer){.fn = on_next_turn, .arg = h};
}
