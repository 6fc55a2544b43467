/* The body of a request: kept whole up to a bound, or handed on piece by piece. */

#include "http/http_internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DRAIN_MAX                                                                                  \
    (1u << 20) /* bytes beyond a limit that are read before the connection is closed */
#define STREAM_DRAIN_MAX (256u << 20) /* the same for a stream, which is expected to be large */
#define FORM_BUF         16384

bool http_reserve(struct http_req *r, size_t len) {
    struct http *h = r->http;
    if (len <= HTTP_SMALL_BODY || len <= r->held)
        return true;
    if (len - r->held > h->o.bodies_max - h->bodies)
        return false;
    h->bodies += len - r->held;
    r->held = len;
    return true;
}

void http_release(struct http_req *r) {
    r->http->bodies -= r->held;
    r->held = 0;
}

void http_take_body(struct http_req *r, const struct http_take *how) {
    r->take = *how;
    uint64_t len = http_body_length(r); /* known before anything of it was read */
    if (len > how->max)
        how->too_large(r);
    else if (!http_reserve(r, (size_t)len))
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

/* While the library cannot tell whether a part's first bytes are content or its end, it hands over
 * an empty piece, and the next one begins at 0 again. A second part of the same names behind an
 * empty one looks the same; it is taken for the content of that one. */
static bool begins_part(struct http_req *r, const char *name, const char *filename, uint64_t off,
                        size_t size) {
    AUTO_BUF names = BUF_INIT;
    if (off > 0)
        return false;
    buf_add(&names, name, strlen(name) + 1);
    buf_adds(&names, filename ? filename : "");
    bool known =
        names.len == r->form_begun.len && memcmp(names.data, r->form_begun.data, names.len) == 0;
    buf_clear(&r->form_begun);
    if (size == 0)
        buf_add(&r->form_begun, names.data, names.len);
    return !known;
}

static enum MHD_Result on_piece(void *arg, enum MHD_ValueKind kind, const char *key,
                                const char *filename, const char *type, const char *encoding,
                                const char *data, uint64_t off, size_t size) {
    struct http_req *r = arg;
    (void)kind, (void)type, (void)encoding;
    const char *name = key ? key : "";
    const struct http_part p = {.name = name,
                                .filename = filename,
                                .data = data,
                                .len = size,
                                .first = begins_part(r, name, filename, off, size)};
    if (!r->form_stopped && !r->piece(r, &p))
        r->form_stopped = true;
    return r->form_stopped ? MHD_NO : MHD_YES;
}

int http_take_form(struct http_req *r, bool (*piece)(struct http_req *r, const struct http_part *p),
                   http_fn *end) {
    const char *type = http_header(r, "Content-Type");
    if (!type || strncasecmp(type, "multipart/form-data", 19) != 0)
        return -1;
    r->form = MHD_create_post_processor(r->conn->mhd, FORM_BUF, on_piece, r);
    if (!r->form)
        return -1;
    r->piece = piece;
    r->take.whole = end;
    return 0;
}

bool http_form_is_whole(const struct http_req *r) {
    return r->form_whole;
}

void http_take_stream(struct http_req *r,
                      void (*piece)(struct http_req *r, const char *data, size_t len),
                      http_fn *end) {
    r->stream = piece;
    r->take.whole = end;
}

void http_hold(struct http_req *r) {
    r->on_hold = true;
}

void http_proceed(struct http_req *r) {
    if (r->beginning) /* it has not been put to sleep yet */
        r->on_hold = false;
    else if (r->on_hold)
        http_wake(r);
}

bool http_body_drains(const struct http_req *r) {
    return (r->stream || r->form) && !http_header(r, MHD_HTTP_HEADER_EXPECT) &&
           http_body_length(r) <= STREAM_DRAIN_MAX;
}

static void throw_away(struct http_req *r, size_t len) {
    r->thrown += len;
    if (r->thrown > (r->stream || r->form ? STREAM_DRAIN_MAX : DRAIN_MAX))
        r->closing = true;
}

/* No more of it is kept. */
static void refuse_rest(struct http_req *r, size_t len, http_fn *why) {
    r->refused = why;
    buf_done(&r->body);
    r->body = (struct buf)BUF_INIT;
    throw_away(r, len);
}

/* The last bytes of a form: what may come behind its last boundary confuses the library. */
static void keep_tail(struct http_req *r, const char *data, size_t len) {
    size_t cap = sizeof r->form_tail, more = len < cap ? len : cap;
    size_t old = r->form_tail_len + more > cap ? cap - more : r->form_tail_len;
    memmove(r->form_tail, r->form_tail + r->form_tail_len - old, old);
    memcpy(r->form_tail + old, data + len - more, more);
    r->form_tail_len = old + more;
}

static bool has_last_boundary(const struct http_req *r) {
    const char *type = http_header(r, "Content-Type");
    const char *at = type ? strcasestr(type, "boundary=") : NULL;
    AUTO_BUF last = BUF_INIT;
    if (!at)
        return false;
    at += strlen("boundary=");
    bool quoted = *at == '"';
    buf_addf(&last, "\r\n--%.*s--", (int)strcspn(at + quoted, quoted ? "\"" : "; \t"), at + quoted);
    return memmem(r->form_tail, r->form_tail_len, last.data, last.len) != NULL;
}

void http_body_data(struct http_req *r, const char *data, size_t len) {
    r->bytes_in += len;
    r->step_bytes += len;
    if (r->refused || r->response || r->queued || r->form_stopped) {
        throw_away(r, len);
    } else if (r->form) {
        keep_tail(r, data, len);
        MHD_post_process(r->form, data, len);
    } else if (r->stream) {
        r->stream(r, data, len);
    } else if (r->body.len + len > r->take.max) {
        refuse_rest(r, len, r->take.too_large);
    } else if (!http_reserve(r, r->body.len + len)) {
        refuse_rest(r, len, r->take.no_room);
    } else {
        buf_add(&r->body, data, len);
    }
}

void http_body_end(struct http_req *r) {
    if (r->body_done)
        return;
    r->body_done = true;
    if (r->form) {
        /* Hands over what it still holds. */
        r->form_whole = MHD_destroy_post_processor(r->form) == MHD_YES || has_last_boundary(r);
        r->form = NULL;
    }
    if (r->form_stopped || r->response)
        return;
    http_fn *next = r->refused ? r->refused : r->take.whole;
    if (next)
        next(r);
    buf_done(&r->body); /* who wants more of it has a copy, and may wait for long */
    r->body = (struct buf)BUF_INIT;
}

void http_body_done(struct http_req *r) {
    if (r->form) {
        r->form_stopped = true; /* whatever it still holds is nobody's */
        MHD_destroy_post_processor(r->form);
    }
    r->form = NULL;
    buf_done(&r->form_begun);
    buf_done(&r->body);
    http_release(r);
}
