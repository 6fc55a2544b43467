#pragma once
/* A text for a model of which there may be too much: its beginning and its end, and in between what
 * is missing. It is put together from pieces that stay where they are, and of a long one only what
 * is shown is looked at. For api/mcp only. */

#include "base/buf.h"

#include <stdbool.h>

/* The inside of a JSON string, as an event of an execution has it. */
struct cut_piece {
    const char *at; /* borrowed */
    size_t len;
};
struct cut {
    struct cut_piece *pieces; /* owned */
    size_t n;
    size_t bytes; /* of all pieces */
};
void cut_done(struct cut *c);
void cut_add(struct cut *c, const char *inside, size_t len);
/* A constant, which needs no escaping. */
void cut_adds(struct cut *c, const char *text);
/* The last piece is the end of a line, or there is none. */
bool cut_at_line(const struct cut *c);

/* Plain text (plain.h) of about `most` characters and never more, with a line on what is missing
 * and what to do about it (`rest`, or ""). True when something is. */
bool cut_text(const struct cut *c, size_t most, const char *rest, struct buf *to);
