#pragma once
/* What a program or a cell shows: the value of its last expression, and displays. Each is an event
 * for whoever follows, and is kept for the result: one list for both kinds.
 *
 * SECURITY: a kernel is hostile. Number and bytes have a bound, for one of them and for all of a
 * sandbox (kept.h); what one message may hold is bounded in said.c. */

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHOWN_BYTES_MAX (32u << 20) /* bytes of what one shows */
#define SHOWN_MOST      10000       /* of them */

struct jw;
struct kept;
struct rope;
struct said;

struct shown_output {
    struct buf text;            /* the event: {"data":…,"metadata":… and what follows it */
    size_t open;                /* bytes of it before that: what the result has of it */
    size_t plain_at, plain_len; /* see said.h */
    char *display_id;           /* owned, or NULL */
    bool is_main, update;
};

struct shown {
    struct kept *account;         /* borrowed: where they count */
    struct shown_output *outputs; /* owned */
    uint64_t *hashes;             /* owned: of their display_ids, one each */
    unsigned n;
    size_t bytes;
    bool cut; /* something is missing */
};

void shown_done(struct shown *s);
/* What the kernel said, whose text is taken, as an event: a display, or the main result. */
void shown_read(struct said *said, bool is_main, uint64_t execution_count,
                struct shown_output *ret);
/* Takes the output, once it was told. */
void shown_keep(struct shown *s, struct shown_output *o);
/* `results`, and as `text` the last expression's value. Takes them. */
void shown_put(struct shown *s, struct jw *j, struct rope *to);
