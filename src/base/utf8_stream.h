#pragma once
/* A stream of bytes in pieces that are text by themselves: a character that is not whole yet waits
 * for the rest of it. */

#include "base/buf.h"
#include "base/schema.h"

struct utf8_stream {
    char tail[4]; /* of a character that is not whole yet */
    size_t len;
};

/* Adds what is whole by now to `to`. */
void utf8_stream_add(struct utf8_stream *p, const void *data, size_t len, struct buf *to);
/* There is no more: adds what is left. */
void utf8_stream_end(struct utf8_stream *p, struct buf *to);
/* {"data":"…"} */
extern const struct schema utf8_stream_schema;
void utf8_stream_json(const struct buf *text, struct buf *to);
