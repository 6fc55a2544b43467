/* The body of a request: kept whole up to a bound, or handed on piece by piece. */

#include "http/http_internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DRAIN_MAX                                                                                  \
    (1u << 20) /* bytes beyond a limit that are read before the connection is closed */
#define FORM_BUF 16384

void http_take_body(struct http_req *r, size_t max, http_fn *whole, http_fn *too_large) {
    r->body_max = max;
    r->whole = whole;
    r->too_large = too_large;
    if (http_body_length(r) > max) /* known before anything of it was read */
        too_large(r);
}

uint64_t http_body_length(const struct http_req *r) {
    const char *len = http_header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return len ? strtoull(len, NULL, 10) : 0; /* http_check.c: digits, and not too many */
}

const struct buf *http_body(const struct http_req *r) {
    return &r->body;
}

static enum MHD_Result on_piece(void *arg, enum MHD_ValueKind kind, const char *key,
                                const char *filename, const char *type, const char *encoding,
                                const char *data, uint64_t off, size_t size) {
    struct http_req *r = arg;
    (void)kind, (void)type, (void)encoding;
    const struct http_part p = {
        .name = key ? key : "", .filename = filename, .data = data, .len = size, .first = off == 0};
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
    r->whole = end;
    return 0;
}

static void throw_away(struct http_req *r, size_t len) {
    r->thrown += len;
    if (r->thrown > DRAIN_MAX)
        r->closing = true;
}

void http_body_data(struct http_req *r, const char *data, size_t len) {
    r->bytes_in += len;
    r->step_bytes += len;
    if (r->too_much || r->response || r->queued || r->form_stopped) {
        throw_away(r, len);
    } else if (r->form) {
        MHD_post_process(r->form, data, len);
    } else if (r->body.len + len > r->body_max) {
        r->too_much = true;
        buf_done(&r->body);
        r->body = (struct buf)BUF_INIT;
        throw_away(r, len);
    } else {
        buf_add(&r->body, data, len);
    }
}

void http_body_end(struct http_req *r) {
    if (r->body_done)
        return;
    r->body_done = true;
    if (r->form) {
        MHD_destroy_post_processor(r->form); /* hands over what it still holds */
        r->form = NULL;
    }
    if (r->form_stopped || r->response)
        return;
    http_fn *next = r->too_much ? r->too_large : r->whole;
    if (next)
        next(r);
}

void http_body_done(struct http_req *r) {
    if (r->form) {
        r->form_stopped = true; /* whatever it still holds is nobody's */
        MHD_destroy_post_processor(r->form);
    }
    r->form = NULL;
    buf_done(&r->body);
}
