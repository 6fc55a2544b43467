#pragma once
/* What a program writes to one of its two streams: collected up to a cap, passed on as it comes. */

#include "base/rope.h"
#include "loop/loop.h"

#include <stdbool.h>
#include <stdint.h>

struct output {
    struct loop *loop; /* borrowed */
    struct watch watch;
    int fd;             /* borrowed: the sandbox's */
    struct rope text;   /* the beginning of what is kept, which somebody shares */
    struct buf kept;    /* the rest of it, or all */
    struct blob *whole; /* owned: all, when there will be no more; or NULL */
    uint64_t total, cap;
    uint64_t cleared; /* of the total: nobody misses it any more */
    bool held;
    bool is_terminal; /* the cap is for what is kept, the end of it; all of it is passed on */
    void (*on_data)(struct output *o, const void *data, size_t len); /* within the cap */
    void *arg;
};

int output_begin(struct output *o, struct loop *l, int fd, uint64_t cap, struct err *e);
/* From here on it is another one's output. */
void output_reset(struct output *o, uint64_t cap);
/* What was written so far is to be forgotten. */
void output_clear(struct output *o);
/* Takes what the pipe holds at this moment and no more: a writer that goes on for ever cannot hold
 * the caller up. */
void output_drain(struct output *o);
/* Stop or go on reading; the program blocks on a full pipe meanwhile. */
void output_hold(struct output *o, bool hold);
void output_end(struct output *o);
void output_free(struct output *o);
bool output_truncated(const struct output *o);
size_t output_len(const struct output *o); /* bytes that are kept */
/* What is kept so far, to be read later: large output is shared and not copied. */
void output_share(struct output *o, struct rope *to);
/* All of it, in `whole`: there will be no more. */
void output_whole(struct output *o);
