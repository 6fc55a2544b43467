/* What waits for clients to read it, of one connection and of all together.
 *
 * Everything that a reply holds is counted: the buffer of a stream, a WebSocket's queue, and the
 * bytes behind a rope, once for all replies that share them. Those that hold more than a little
 * stand in a list, the one whose client has taken nothing for longest first. When all together are
 * over their bound, connections are cut from that end of the list, until they no longer are. The
 * last one left may hold as much as it likes: a single reply is made of what is kept anyway. */

#include "http/http_held.h"

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "http/http_conn.h"
#include "http/ws_internal.h"

size_t http_replies(const struct http *h) {
    return h->replies;
}

uint64_t http_replies_cut(const struct http *h) {
    return h->replies_cut;
}

/* ---- the list ---- */

static void unlist(struct http_req *r) {
    struct http *h = r->http;
    if (!r->listed)
        return;
    *(r->idler ? &r->idler->livelier : &h->idlest) = r->livelier;
    *(r->livelier ? &r->livelier->idler : &h->liveliest) = r->idler;
    r->listed = false;
}

static void list_last(struct http_req *r) {
    struct http *h = r->http;
    r->idler = h->liveliest;
    r->livelier = NULL;
    *(h->liveliest ? &h->liveliest->livelier : &h->idlest) = r;
    h->liveliest = r;
    r->listed = true;
}

void http_took(struct http_req *r) {
    if (!r->listed)
        return;
    unlist(r);
    list_last(r);
}

static bool is_over_bound(const struct http *h) {
    return h->o.replies_max && h->replies > h->o.replies_max;
}

/* One message may be as large as it likes, and what is said behind it is small. */
bool http_is_too_much(const struct http *h, size_t backlog, size_t len, size_t *beyond) {
    *beyond = h->o.reply_max && backlog > h->o.reply_max ? *beyond + len : 0;
    return *beyond > HTTP_HIGH_WATER;
}

/* What a stream has by itself, not behind its rope. */
static size_t own_of(const struct http_req *r) {
    return r->out.cap + (r->source ? r->source->holds : 0);
}

static size_t holds_of(const struct http_req *r) {
    return own_of(r) + r->rest.bytes + (r->ws ? ws_held(r->ws) : 0);
}

void http_weigh(struct http_req *r) {
    struct http *h = r->http;
    size_t owes = own_of(r) + (r->ws ? ws_owes(r->ws) : 0);
    h->replies = h->replies - r->owed + owes;
    r->owed = owes;
    bool holds = holds_of(r) > HTTP_SMALL;
    if (holds && !r->listed)
        list_last(r);
    else if (!holds)
        unlist(r);
    if (r->too_slow || is_over_bound(h)) /* whoever holds it may be in the middle of something */
        loop_share_wait(&h->sending, &h->squeeze);
}

void http_let_go(struct http_req *r) {
    struct http_source *s = r->source;
    unlist(r);
    rope_done(&r->rest);
    buf_done(&r->out);
    r->out_at = 0;
    r->source = NULL;
    if (s)
        s->free(s);
    r->http->replies -= r->owed;
    r->owed = 0;
}

static void cut(struct http_req *r) {
    log_info("reply cut path=%s held=%zu why=%s", log_text(r->path), holds_of(r),
             r->too_slow ? "reply_buffer_kb" : "replies_mb");
    r->http->replies_cut++;
    unlist(r);
    if (r->ws)
        ws_cut(r->ws);
    else
        http_cut(r);
}

/* SECURITY: there may be a thousand of them, each with thousands of messages: a few in a turn. And
 * nobody is cut for what is about to be dropped anyway. */
static bool may_cut(struct http *h) {
    return !h->giving_up && !loop_share_is_spent(&h->sending);
}

static void on_squeeze(struct loop_sharer *who) {
    struct http *h = who->arg;
    for (struct http_req *r = h->idlest, *next; r; r = next) {
        next = r->livelier;
        if (r->too_slow)
            cut(r);
    }
    while (is_over_bound(h) && h->idlest != h->liveliest && may_cut(h))
        cut(h->idlest);
    if (is_over_bound(h) && h->idlest != h->liveliest)
        loop_share_wait(&h->sending, who);
}

void http_held_init(struct http *h) {
    h->squeeze = (struct loop_sharer){.fn = on_squeeze, .arg = h};
}
