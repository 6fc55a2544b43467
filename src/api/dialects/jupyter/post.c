/* See jupyter.h. The way of a hub's messages to its clients, in their order.
 *
 * SECURITY: a kernel may have a thousand clients, and a message for all of them is a thousand
 * messages; one request may lead to hundreds of those. So a hub goes from client to client while
 * the share of a turn lasts that all hubs have, and goes on in one of the next. When much is on its
 * way, the kernel is held (events.c), and a client that asks for more is not heard (channels.c).
 * The end takes the same way: clients are closed one after the other. */

#include "api/dialects/jupyter/jupyter.h"

#include "base/list.h"
#include "http/ws.h"
#include "loop/crew.h"

#include <stdlib.h>

#define SOME 16u /* clients between two looks at the clock */

/* Messages, or their bytes: with so many on their way it is full, and below so many no more. */
#define HIGH       64u
#define LOW        16u
#define HIGH_BYTES (1u << 20)
#define LOW_BYTES  (256u << 10)

static struct loop_share *share_of(const struct jupyter_hub *h) {
    struct jupyter *j = dialect_state(h->api, &jupyter_dialect);
    return &j->posting;
}

bool jupyter_post_is_full(const struct jupyter_hub *h) {
    return h->post.is_full;
}

static void hear_again(struct jupyter_hub *h) {
    jupyter_unhold(h);
    for (struct jupyter_client *c = h->clients; c; c = c->next) {
        if (c->waits)
            inbox_hold(&c->in, false);
        c->waits = false;
    }
}

static void weigh_post(struct jupyter_hub *h) {
    struct jupyter_post *p = &h->post;
    bool was_full = p->is_full;
    p->is_full =
        was_full ? p->n > LOW || p->bytes > LOW_BYTES : p->n > HIGH || p->bytes > HIGH_BYTES;
    if (was_full && !p->is_full && !h->gone)
        hear_again(h);
}

/* SECURITY: whoever does not read costs no more than a bound (reply_buffer_kb), and what several
 * have not read yet is there once. The one who runs something is waited for (see run.c),
 * the others are not. */
static void send_or_cut(struct jupyter_client *c, struct jupyter_out *m) {
    bool binary;
    struct blob *frame = jupyter_write(m, c->v1, &binary);
    ws_send_blob(c->ws, binary, frame);
    if (ws_is_closing(c->ws))
        jupyter_leave(c);
}

static struct jupyter_out *take_out(struct jupyter_hub *h, struct jupyter_out **at) {
    struct jupyter_post *p = &h->post;
    struct jupyter_out *m = LIST_POP(at, next);
    if (!*at)
        p->end = at;
    if (at == &p->first)
        p->at = h->clients;
    p->n--;
    p->bytes -= jupyter_out_size(m);
    m->next = NULL;
    return m;
}

/* False: the other clients get it in another turn. */
static bool post_to_all(struct jupyter_hub *h, struct jupyter_out *m) {
    for (unsigned n = 1; h->post.at; n++) {
        struct jupyter_client *c = h->post.at;
        h->post.at = c->next;
        send_or_cut(c, m);
        if (n % SOME == 0 && loop_share_is_spent(share_of(h)))
            return false;
    }
    return true;
}

static void post_messages(struct jupyter_hub *h) {
    struct jupyter_post *p = &h->post;
    while (p->first && !loop_share_is_spent(share_of(h))) {
        if (!p->first->to && !post_to_all(h, p->first))
            return;
        struct jupyter_out *m = take_out(h, &p->first);
        if (m->to)
            send_or_cut(m->to, m);
        jupyter_out_free(m);
    }
}

static void close_clients(struct jupyter_hub *h) {
    while (h->clients && !loop_share_is_spent(share_of(h))) {
        struct jupyter_client *c = LIST_POP(&h->clients, next);
        c->hub = NULL;
        ws_close(c->ws, WS_GOING_AWAY, "the kernel is gone");
    }
}

bool jupyter_post_is_over(const struct jupyter_hub *h) {
    return !h->post.first && !h->clients && !h->post.turn.waits_for;
}

static void post_go_on(struct jupyter_hub *h) {
    struct jupyter_post *p = &h->post;
    p->is_busy = true;
    post_messages(h);
    if (h->gone && !p->first)
        close_clients(h);
    p->is_busy = false;
    weigh_post(h);
    if (p->first || (h->gone && h->clients))
        loop_share_wait(share_of(h), &p->turn);
    else if (h->gone)
        loop_defer(h->api->o.loop, &h->later);
}

void jupyter_post(struct jupyter_hub *h, struct jupyter_out *m) {
    struct jupyter_post *p = &h->post;
    if (!p->first)
        p->at = h->clients;
    *p->end = m;
    p->end = &m->next;
    p->n++;
    p->bytes += jupyter_out_size(m);
    weigh_post(h);
    if (p->is_busy || !loop_share_begin(share_of(h), &p->turn))
        return;
    post_go_on(h);
    loop_share_end(share_of(h));
}

/* What the last client does not get any more is kept for when it comes back. */
void jupyter_post_leave(struct jupyter_hub *h, struct jupyter_client *c) {
    struct jupyter_post *p = &h->post;
    bool has_first = p->at != c;
    if (!has_first)
        p->at = c->next;
    (void)LIST_REMOVE(&h->clients, c, next);
    for (struct jupyter_out **at = &p->first; *at;) {
        const struct jupyter_out *m = *at;
        bool is_sent = at == &p->first && has_first;
        if (m->to ? m->to != c : h->clients || is_sent) {
            at = &(*at)->next;
            continue;
        }
        struct jupyter_out *own = take_out(h, at);
        own->to = NULL;
        if (h->clients || h->gone)
            jupyter_out_free(own);
        else
            jupyter_keep(h, own);
    }
}

void jupyter_post_end(struct jupyter_hub *h) {
    loop_share_wait(share_of(h), &h->post.turn);
}

static void post_on_turn(struct loop_sharer *who) {
    post_go_on(who->arg);
}

void jupyter_post_init(struct jupyter_hub *h) {
    h->post.end = &h->post.first;
    h->post.turn =
        (struct loop_sharer){.fn = post_on_turn, .arg = h, .owner = crew_owner(h->tenant)};
}

void jupyter_post_done(struct jupyter_hub *h) {
    loop_share_leave(&h->post.turn);
    while (h->post.first)
        jupyter_out_free(take_out(h, &h->post.first));
}
