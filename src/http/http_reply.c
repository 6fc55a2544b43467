/* Replies. A response is made when the handler replies, and given to libmicrohttpd when that next
 * calls for it: a sleeping connection is woken up for it. A stream is a buffer that the library
 * empties when the client's socket takes more, and that sleeps when it is empty. */

#include "http/http_reply.h"

#include "base/fd.h"
#include "http/http_body.h"
#include "http/http_conn.h"
#include "http/http_held.h"
#include "http/http_turn.h"
#include "http/internal.h"

#include <stdlib.h>
#include <string.h>

void http_add_header(struct http_req *r, const char *name, const char *value) {
    r->headers = xrealloc(r->headers, (r->nheaders + 1) * sizeof *r->headers);
    r->headers[r->nheaders++] = (struct header){xstrdup(name), xstrdup(value)};
}

static void dress(struct http_req *r, int status, const char *type) {
    if (r->http->o.on_reply)
        r->http->o.on_reply(r->http->o.arg);
    if (type)
        MHD_add_response_header(r->response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    for (unsigned i = 0; i < r->nheaders; i++)
        MHD_add_response_header(r->response, r->headers[i].name, r->headers[i].value);
    if (!r->switched && (r->closing || r->http->draining))
        MHD_add_response_header(r->response, MHD_HTTP_HEADER_CONNECTION, "close");
    r->status = status;
}

/* To be queued when the library asks next. */
static void ready(struct http_req *r) {
    if (r->held_back)
        http_body_go_on(r);
    else if (r->phase == REQ_WAITING || r->on_hold)
        http_wake(r);
}

static bool made(struct http_req *r, struct MHD_Response *response) {
    r->response = response;
    if (!response)
        http_cut(r);
    return response != NULL;
}

static bool may_reply(const struct http_req *r) {
    return !r->response && !r->queued && r->phase != REQ_CUT;
}

static ssize_t on_more(void *arg, uint64_t pos, char *to, size_t max);

/* A reply that on_more makes of what `r` has by then; `size` as far as it is known. */
static void begin_reply(struct http_req *r, int status, const char *type, uint64_t size) {
    size_t slice = size != MHD_SIZE_UNKNOWN && size > HTTP_LARGE ? HTTP_LARGE_SLICE : HTTP_SLICE;
    r->streaming = true;
    if (!made(r, MHD_create_response_from_callback(size, slice, on_more, r, NULL)))
        return;
    dress(r, status, type);
    http_weigh(r);
    ready(r);
}

/* Of a larger one the client's slowness costs no more than for a stream. */
static void reply_large(struct http_req *r, int status, const char *type, const void *data,
                        size_t len) {
    struct buf copy = BUF_INIT;
    buf_add(&copy, data, len);
    rope_add(&r->rest, &copy);
    r->ended = true;
    begin_reply(r, status, type, len);
}

void http_reply(struct http_req *r, int status, const char *type, const void *data, size_t len) {
    if (!may_reply(r))
        return;
    if (len > HTTP_SMALL) {
        reply_large(r, status, type, data, len);
        return;
    }
    void *copied = (void *)(uintptr_t)data;
    if (!made(r, MHD_create_response_from_buffer(len, copied, MHD_RESPMEM_MUST_COPY)))
        return;
    r->bytes_out = len;
    dress(r, status, type);
    ready(r);
}

void http_refuse(struct http_req *r, int status, const char *type, const void *data, size_t len) {
    r->closing = true;
    http_reply(r, status, type, data, len);
}

void http_reply_file(struct http_req *r, int status, const char *type, int *fd, uint64_t from,
                     uint64_t size) {
    if (!may_reply(r) || !made(r, MHD_create_response_from_fd_at_offset64(size, *fd, from))) {
        fd_close(fd);
        return;
    }
    fd_take(fd);
    r->bytes_out = size;
    dress(r, status, type);
    ready(r);
}

bool http_switch(struct http_req *r, void *arg, MHD_UpgradeHandler fn) {
    if (!may_reply(r) || !made(r, MHD_create_response_for_upgrade(fn, arg)))
        return false;
    r->switched = true;
    dress(r, MHD_HTTP_SWITCHING_PROTOCOLS, NULL);
    ready(r);
    return true;
}

/* ---- streams ---- */

size_t http_backlog(const struct http_req *r) {
    return r->out.len - r->out_at + r->rest.bytes;
}

/* The next slice into the empty buffer. False: there is none, or not in this turn. */
static bool fill_stream(struct http_req *r) {
    if (r->rest.n) {
        rope_read(&r->rest, HTTP_SLICE, &r->out);
    } else if (r->source && !r->source->more(r->source, &r->out)) {
        struct http_source *s = r->source;
        r->source = NULL;
        r->ended = true;
        s->free(s);
    }
    http_weigh(r);
    return r->out.len > 0;
}

static void empty(struct http_req *r) {
    r->out_at = 0;
    buf_clear(&r->out);
    if (r->out.cap > HTTP_HIGH_WATER) { /* it was large once */
        buf_done(&r->out);
        http_weigh(r);
    }
}

static ssize_t on_more(void *arg, uint64_t pos, char *to, size_t max) {
    struct http_req *r = arg;
    (void)pos;
    if (r->phase == REQ_CUT)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    http_took(r);
    if (!http_may_go(r->conn))
        return 0;
    if (r->out.len == 0 && !fill_stream(r)) {
        if (r->ended && !r->source)
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (r->source)
            http_put_off(r->conn);
        else
            http_sleep(r);
        return 0;
    }
    size_t n = r->out.len - r->out_at;
    if (n > max)
        n = max;
    memcpy(to, r->out.data + r->out_at, n);
    r->out_at += n;
    r->bytes_out += n;
    if (r->out_at == r->out.len)
        empty(r);
    if (r->high && http_backlog(r) < HTTP_LOW_WATER) {
        r->high = false;
        if (r->on_drain)
            r->on_drain(r);
    }
    return (ssize_t)n;
}

/* The library would send the last chunk of a stream all the same. */
static bool is_head(const struct http_req *r) {
    return strcmp(r->method, "HEAD") == 0;
}

void http_stream(struct http_req *r, int status, const char *type) {
    if (!may_reply(r))
        return;
    if (is_head(r))
        http_reply(r, status, type, "", 0);
    else
        begin_reply(r, status, type, MHD_SIZE_UNKNOWN);
}

void http_stream_of(struct http_req *r, int status, uint64_t size) {
    if (may_reply(r))
        begin_reply(r, status, NULL, size);
}

void http_reply_rope(struct http_req *r, int status, const char *type, struct rope *rope) {
    AUTO_BUF whole = BUF_INIT;
    if (rope->bytes <= HTTP_SMALL || is_head(r) || !may_reply(r)) {
        if (rope->bytes <= HTTP_SMALL)
            rope_read(rope, SIZE_MAX / 2, &whole);
        http_reply(r, status, type, whole.data, whole.len);
    } else {
        rope_add_rope(&r->rest, rope);
        r->ended = true;
        begin_reply(r, status, type, MHD_SIZE_UNKNOWN);
    }
    rope_done(rope);
}

void http_reply_from(struct http_req *r, int status, const char *type, struct http_source *s) {
    AUTO_BUF first = BUF_INIT;
    if (!may_reply(r)) {
        s->free(s);
    } else if (!s->more(s, &first) || is_head(r)) { /* as a rule there is no more than this */
        http_reply(r, status, type, first.data, first.len);
        s->free(s);
    } else {
        r->source = s;
        r->out = first;
        first = (struct buf)BUF_INIT;
        begin_reply(r, status, type, MHD_SIZE_UNKNOWN);
    }
}

static bool may_write(struct http_req *r, size_t len) {
    if (!r->streaming || r->ended || r->phase == REQ_CUT)
        return false;
    if (http_is_too_much(r->http, http_backlog(r), len, &r->beyond))
        r->too_slow = true; /* and is cut at the end of the batch */
    return !r->too_slow;
}

static void wrote(struct http_req *r) {
    if (http_backlog(r) > HTTP_HIGH_WATER)
        r->high = true;
    http_weigh(r);
    if (r->queued)
        http_wake(r);
}

void http_write(struct http_req *r, const void *data, size_t len) {
    struct buf *to = &r->out, behind = BUF_INIT;
    if (len == 0)
        return;
    if (!may_write(r, len)) {
        http_weigh(r);
        return;
    }
    if (r->out_at > HTTP_HIGH_WATER) { /* what was sent makes room */
        buf_drop(to, r->out_at);
        r->out_at = 0;
    }
    if (r->rest.n)
        to = &behind;
    buf_add(to, data, len);
    rope_add(&r->rest, &behind);
    wrote(r);
}

void http_write_rope(struct http_req *r, struct rope *rope) {
    if (may_write(r, rope->bytes))
        rope_add_rope(&r->rest, rope);
    rope_done(rope);
    wrote(r);
}

void http_set_sign(struct http_req *r, const char *sign) {
    r->sign = sign;
}

void http_set_for_client(struct http_req *r) {
    r->for_client = true;
}

void http_end(struct http_req *r) {
    r->ended = true;
    if (r->queued && r->phase != REQ_CUT)
        http_wake(r);
}

void http_abort(struct http_req *r) {
    http_cut(r);
}

void http_on_drain(struct http_req *r, http_fn *fn) {
    r->on_drain = fn;
}

void http_on_gone(struct http_req *r, http_fn *fn) {
    r->on_gone = fn;
}

bool http_is_gone(const struct http_req *r) {
    return r->phase == REQ_CUT;
}

enum MHD_Result http_queue(struct http_req *r) {
    enum MHD_Result queued = MHD_queue_response(r->conn->mhd, (unsigned)r->status, r->response);
    MHD_destroy_response(r->response);
    r->response = NULL;
    r->queued = true;
    r->phase = REQ_REPLYING;
    r->conn->lingers = !r->body_done || r->conn->framing.cut;
    return queued;
}
