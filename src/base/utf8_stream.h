#pragma once
/* A stream of bytes in pieces that are text by themselves: a character that is not whole yet waits
 * for the rest of it. */

#include "base/buf.h"

struct pieces {
    char tail[4]; /* of a character that is not whole yet */
    size_t len;
};

/* Adds what is whole by now to `to`. */
void pieces_add(struct pieces *p, const void *data, size_t len, struct buf *to);
/* There is no more: adds what is left. */
void pieces_end(struct pieces *p, struct buf *to);
/* {"data":"…"} */
void pieces_json(const struct buf *text, struct buf *to);
