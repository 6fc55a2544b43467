#pragma once
/* A message over a WebSocket, read by a table of fields: what an inbox (inbox.h) makes of those
 * that are JSON when they are text. For api/ only. */

#include "base/buf.h"
#include "http/fields.h"

struct heard {
    const void *data; /* borrowed from a binary message; NULL: it is text, */
    size_t len;
    json_t *json;     /* owned: which says this; or NULL: it is not what it should be, */
    struct buf reply; /* and this is why, as in the reply to a body */
};

/* The two are for an inbox's `read` and `drop`. */
struct heard *heard_read(const struct schema *s, const void *data, size_t len, bool binary);
void heard_drop(void *message);
