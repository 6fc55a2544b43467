#pragma once
/* Messages on stdin: one JSON value a line. A line that is too long is skipped as it comes, and of
 * it only the id is kept, so that whoever waits for its answer gets one. */

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

#define LINE_MAX_BYTES (4u << 20) /* as the server's own bound on a message */
#define LINE_ID_MAX    160

struct lines {
    struct buf in; /* what has come of lines that are not taken yet */
    size_t at;     /* what is taken of it */
    size_t scanned;
    bool skipping;
    /* Of the line that is skipped: where in the JSON we are. */
    unsigned depth;
    bool in_string, escaped, is_key, in_id;
    size_t key_len;
    char key[4];
    char id[LINE_ID_MAX]; /* the JSON of its id as far as it came, or "" */
    size_t id_len;
};
#define LINES_INIT                                                                                 \
    { .in = BUF_INIT }

enum line_got { LINE_NONE, LINE_GOT, LINE_TOO_LONG };

void lines_add(struct lines *l, const char *data, size_t len);
/* The end of stdin: what came after the last newline is a line, too. */
void lines_end(struct lines *l);
/* The next line, without its newline, until the next call of lines_add; never an empty one. Of one
 * that was too long *ret is the JSON of its id, "null" where none was found. */
enum line_got lines_next(struct lines *l, const char **ret, size_t *ret_len);
void lines_done(struct lines *l);
