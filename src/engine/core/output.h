#pragma once
/* What a program writes to one of its two streams: collected up to a cap, passed on as it comes. */

#include "base/rope.h"
#include "engine/core/kept.h"
#include "loop/share.h"

#include <stdbool.h>
#include <stdint.h>

/* Why it is not read for now. */
enum output_hold {
    HOLD_READER = 1, /* whoever follows it is behind */
    HOLD_REST = 2,   /* the sandbox rests from what it printed (rest.h) */
    HOLD_TYPED = 4,  /* what was typed at a terminal is worked on (live/command_io.c) */
};

struct output {
    struct loop *loop;        /* borrowed */
    struct loop_share *share; /* borrowed: of all outputs, in a turn of the loop */
    struct loop_sharer turn;  /* in that */
    uint64_t owner;           /* set by the owner, as `account`: owners take turns there */
    struct watch watch;
    int fd;             /* borrowed: the sandbox's */
    struct rope text;   /* the beginning of what is kept, which somebody shares */
    struct buf kept;    /* the rest of it, or all */
    struct blob *whole; /* owned: all, when there will be no more; or NULL */
    uint64_t total, cap;
    uint64_t cleared;     /* of the total: nobody misses it any more */
    struct kept *account; /* borrowed, or NULL: where it counts, together with others */
    size_t counted;       /* there */
    bool starved;         /* the others left no room: the rest is thrown away */
    unsigned held;        /* enum output_hold */
    unsigned reads;
    bool is_terminal; /* the cap is for what is kept, the end of it; all of it is passed on */
    void (*on_data)(struct output *o, const void *data, size_t len); /* within the cap */
    void (*on_cost)(struct output *o, uint64_t cpu_ns); /* or NULL: reading it took us so long */
    void *arg;
};

int output_begin(struct output *o, struct loop_share *s, int fd, uint64_t cap, struct err *e);
/* From here on it is another one's output. */
void output_reset(struct output *o, uint64_t cap);
/* The same, with what was kept so far for the caller. */
void output_take(struct output *o, uint64_t cap, struct buf *ret);
/* This is kept as if it had just been read, as long as it fits; on_data does not hear of it. */
void output_put(struct output *o, const void *data, size_t len);
/* What was written so far is to be forgotten, but for the last `but` bytes. */
void output_clear(struct output *o, size_t but);
/* Takes what the pipe holds at this moment and no more: a writer that goes on for ever cannot hold
 * the caller up. */
void output_drain(struct output *o);
/* Stop or go on reading; the program blocks on a full pipe meanwhile. */
void output_hold(struct output *o, enum output_hold why, bool hold);
/* Of stdout and stderr. */
void outputs_hold(struct output out[2], enum output_hold why, bool hold);
void output_end(struct output *o);
/* It is about to be freed, and counts no more. */
void output_uncount(struct output *o);
void output_free(struct output *o);
bool output_truncated(const struct output *o);
bool output_starved(const struct output *o); /* by others: see account */
size_t output_len(const struct output *o);   /* bytes that are kept */
/* What is kept so far, to be read later: large output is shared and not copied. */
void output_share(struct output *o, struct rope *to);
/* All of it, in `whole`: there will be no more. */
void output_whole(struct output *o);
