#pragma once
/* A message over a WebSocket, read by a table of fields: what an inbox (inbox.h) makes of those
 * that are JSON when they are text. For api/ only. */

#include "base/buf.h"
#include "http/fields.h"

struct heard {
    const void *data; /* borrowed from a binary message; NULL: the message is text */
    size_t len;
    json_t *json;     /* owned: what the text says; NULL: it was refused */
    struct buf reply; /* why, as in the reply to a body */
};

/* For an inbox's `read` and `drop`. */
struct heard *heard_read(const struct schema *s, const void *data, size_t len, bool binary);
void heard_drop(void *message);
