/* The body of a request: kept whole up to a bound, or handed on piece by piece. */

#include "http/http_body.h"

#include "http/http_conn.h"
#include "http/internal.h"

#include <stdlib.h>

#define DRAIN_MAX                                                                                  \
    (256u << 20) /* bytes beyond a limit that are read before the connection is cut                \
                  */

static bool fits(const struct http *h, const struct http_account *a, size_t more) {
    return h->bodies <= h->o.bodies_max && more <= h->o.bodies_max - h->bodies &&
           (!a || (a->bytes <= a->most && more <= a->most - a->bytes));
}

static bool has_room(const struct http_req *r, size_t len) {
    return len <= HTTP_SMALL_BODY || len <= r->held || fits(r->http, r->account, len - r->held);
}

bool http_reserve(struct http_req *r, size_t len) {
    if (!has_room(r, len))
        return false;
    if (len <= HTTP_SMALL_BODY || len <= r->held)
        return true;
    r->http->bodies += len - r->held;
    if (r->account)
        r->account->bytes += len - r->held;
    r->held = len;
    return true;
}

void http_release(struct http_req *r) {
    struct http_count c = http_move_count(r);
    http_uncount(&c);
}

void http_take_body(struct http_req *r, const struct http_take *how) {
    r->take = *how;
    uint64_t len = http_body_length(r); /* known before anything of it was read */
    if (len > how->max)
        how->too_large(r);
    else if (!has_room(r, (size_t)len)) /* now: then it need not be sent */
        how->no_room(r);
}

size_t http_bodies(const struct http *h) {
    return h->bodies;
}

uint64_t http_body_length(const struct http_req *r) {
    const char *len = http_header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return len ? strtoull(len, NULL, 10) : 0; /* http_check.c: digits, and not too many */
}

const struct buf *http_body(const struct http_req *r) {
    return &r->body;
}

struct buf http_move_body(struct http_req *r) {
    struct buf body = r->body;
    r->body = (struct buf)BUF_INIT;
    return body;
}

struct http_count http_move_count(struct http_req *r) {
    struct http_count c = {r->http, r->account, r->held};
    r->held = 0;
    return c;
}

void http_count_less(struct http_count *c, size_t bytes) {
    if (bytes && c->account)
        c->account->bytes -= bytes;
    if (bytes)
        c->http->bodies -= bytes;
    c->bytes -= bytes;
}

bool http_count_more(struct http_count *c, size_t bytes) {
    if (!fits(c->http, c->account, bytes))
        return false;
    c->http->bodies += bytes;
    if (c->account)
        c->account->bytes += bytes;
    c->bytes += bytes;
    return true;
}

void http_uncount(struct http_count *c) {
    http_count_less(c, c->bytes);
}

static bool on_piece(void *arg, const struct form_part *p) {
    struct http_req *r = arg;
    if (!r->piece(r, p))
        r->form_stopped = true;
    return !r->form_stopped;
}

int http_take_form(struct http_req *r, bool (*piece)(struct http_req *r, const struct form_part *p),
                   http_fn *end) {
    r->form = form_new(http_header(r, "Content-Type"), on_piece, r);
    if (!r->form)
        return -1;
    r->piece = piece;
    r->take.whole = end;
    return 0;
}

bool http_form_is_whole(const struct http_req *r) {
    return form_is_whole(r->form);
}

void http_take_stream(struct http_req *r,
                      void (*piece)(struct http_req *r, const char *data, size_t len),
                      http_fn *end) {
    r->stream = piece;
    r->take.whole = end;
}

/* The client is not late while nobody reads. */
void http_hold(struct http_req *r) {
    if (r->beginning || r->on_hold) { /* it may be held for more than one reason */
        r->on_hold = true;
    } else if (!r->body_done) {
        r->held_back = true;
        loop_timer_stop(r->http->o.loop, &r->conn->timer);
    }
}

void http_proceed(struct http_req *r) {
    if (r->beginning) /* it has not been put to sleep yet */
        r->on_hold = false;
    else if (r->on_hold)
        http_wake(r);
    else if (r->held_back)
        http_body_go_on(r);
}

void http_body_go_on(struct http_req *r) {
    r->held_back = false;
    loop_timer_in_ms(r->http->o.loop, &r->conn->timer, r->http->o.body_step_s * SECOND_MS);
    http_wake(r);
}

bool http_body_drains(const struct http_req *r) {
    return (r->stream || r->form) && !http_header(r, MHD_HTTP_HEADER_EXPECT) &&
           http_body_length(r) <= DRAIN_MAX;
}

static void throw_away(struct http_req *r, size_t len) {
    r->thrown += len;
    if (r->thrown > DRAIN_MAX)
        r->closing = true;
}

/* From here on the body is thrown away. */
static void refuse_rest(struct http_req *r, size_t len, http_fn *why) {
    r->refused = why;
    buf_done(&r->body);
    r->body = (struct buf)BUF_INIT;
    http_release(r);
    throw_away(r, len);
}

/* SECURITY: where the allocator has a hole for a large body, it moves all of that each time when
 * the body grows: 25 ms for 60 MB. So the whole body gets its room when an eighth of it has come,
 * and not before: room costs the client something. */
static void body_make_room(struct http_req *r, size_t len) {
    struct buf *b = &r->body;
    if (b->len + len < b->cap)
        return;
    uint64_t whole = http_body_length(r);
    if (whole > b->len && whole <= r->take.max && b->len >= whole / 8)
        buf_reserve(b, (size_t)whole - b->len);
}

void http_body_data(struct http_req *r, const char *data, size_t len) {
    r->bytes_in += len;
    r->step_bytes += len;
    if (r->refused || r->response || r->queued || r->form_stopped) {
        throw_away(r, len);
    } else if (r->form) {
        form_add(r->form, data, len);
    } else if (r->stream) {
        r->stream(r, data, len);
    } else if (r->body.len + len > r->take.max) {
        refuse_rest(r, len, r->take.too_large);
    } else if (!http_reserve(r, r->body.len + len)) {
        refuse_rest(r, len, r->take.no_room);
    } else {
        body_make_room(r, len);
        buf_add(&r->body, data, len);
    }
}

void http_body_end(struct http_req *r) {
    if (r->body_done)
        return;
    r->body_done = true;
    if (r->form_stopped || r->response)
        return;
    http_fn *next = r->refused ? r->refused : r->take.whole;
    if (next)
        next(r);
    buf_done(&r->body); /* who wants more of it has a copy, and may wait for long */
    r->body = (struct buf)BUF_INIT;
}

void http_body_done(struct http_req *r) {
    form_free(r->form);
    r->form = NULL;
    buf_done(&r->body);
    http_release(r);
}
