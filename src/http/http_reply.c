/* Replies. A response is made when the handler replies, and given to libmicrohttpd when that next
 * calls for it: a sleeping connection is woken up for it. A stream is a buffer that the library
 * empties when the client's socket takes more, and that sleeps when it is empty. */

#include "http/http_internal.h"

#include "base/fd.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK 32768

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
    if (!r->ws && (r->closing || r->http->draining))
        MHD_add_response_header(r->response, MHD_HTTP_HEADER_CONNECTION, "close");
    r->status = status;
}

/* To be queued when the library asks next. */
static void ready(struct http_req *r) {
    if (r->phase == REQ_WAITING || r->on_hold)
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

void http_reply(struct http_req *r, int status, const char *type, const void *data, size_t len) {
    if (!may_reply(r))
        return;
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

bool http_switch(struct http_req *r, struct ws *w, MHD_UpgradeHandler fn) {
    if (!may_reply(r) || !made(r, MHD_create_response_for_upgrade(fn, w)))
        return false;
    r->ws = w;
    dress(r, MHD_HTTP_SWITCHING_PROTOCOLS, NULL);
    ready(r);
    return true;
}

/* ---- streams ---- */

size_t http_backlog(const struct http_req *r) {
    return r->out.len - r->out_at;
}

static ssize_t on_more(void *arg, uint64_t pos, char *to, size_t max) {
    struct http_req *r = arg;
    (void)pos;
    size_t n = http_backlog(r);
    if (n == 0 && r->ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n == 0) {
        http_sleep(r);
        return 0;
    }
    if (n > max)
        n = max;
    memcpy(to, r->out.data + r->out_at, n);
    r->out_at += n;
    r->bytes_out += n;
    if (r->out_at == r->out.len) {
        buf_clear(&r->out);
        r->out_at = 0;
    }
    if (r->high && http_backlog(r) < HTTP_LOW_WATER) {
        r->high = false;
        if (r->on_drain)
            r->on_drain(r);
    }
    return (ssize_t)n;
}

void http_stream(struct http_req *r, int status, const char *type) {
    if (!may_reply(r))
        return;
    if (strcmp(r->method, "HEAD") == 0) { /* the library would send the last chunk all the same */
        http_reply(r, status, type, "", 0);
        return;
    }
    r->streaming = true;
    if (!made(r, MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, on_more, r, NULL)))
        return;
    dress(r, status, type);
    ready(r);
}

void http_write(struct http_req *r, const void *data, size_t len) {
    if (!r->streaming || r->ended || r->phase == REQ_CUT || len == 0)
        return;
    if (r->out_at > HTTP_HIGH_WATER) { /* what was sent makes room */
        memmove(r->out.data, r->out.data + r->out_at, r->out.len - r->out_at);
        r->out.len -= r->out_at;
        r->out_at = 0;
    }
    buf_add(&r->out, data, len);
    if (http_backlog(r) > HTTP_HIGH_WATER)
        r->high = true;
    if (r->queued)
        http_wake(r);
}

void http_set_sign(struct http_req *r, const char *sign) {
    r->sign = sign;
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

enum MHD_Result http_queue(struct http_req *r) {
    enum MHD_Result queued = MHD_queue_response(r->conn->mhd, (unsigned)r->status, r->response);
    MHD_destroy_response(r->response);
    r->response = NULL;
    r->queued = true;
    r->phase = REQ_REPLYING;
    r->conn->lingers = !r->body_done;
    return queued;
}
