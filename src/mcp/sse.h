#pragma once
/* Server-sent events, for both directions: one event as it is written, and a reader of a stream in
 * whatever pieces it comes. */

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `id` and `data` may be NULL: without; data has no newline, as JSON on one line has none. */
void sse_write(struct buf *to, const char *id, const char *data, size_t len);
#define SSE_ALIVE ": alive\n\n"

/* SECURITY: a server that we are a client of may send an endless line, or an event without end:
 * more than `most` bytes of one event are refused. */
struct sse_reader {
    void *arg;
    /* An event that has data: its type ("message" unless it says so) and id, which lasts. */
    void (*on_event)(void *arg, const char *type, const char *id, const struct buf *data);
    size_t most;
    uint64_t retry_ms; /* what the server asked for last; 0: nothing */
    struct buf id;     /* the last one */
    /* the rest is its own */
    struct buf line, text, type;
    bool has_data, after_cr, begun;
};
#define SSE_READER_INIT                                                                            \
    { .id = BUF_INIT, .line = BUF_INIT, .text = BUF_INIT, .type = BUF_INIT }

/* False: too much for one event. */
bool sse_read(struct sse_reader *r, const char *bytes, size_t len);
void sse_reader_done(struct sse_reader *r);
