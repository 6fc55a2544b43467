#pragma once
/* Server-sent events, as bytes come in. */

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define SSE_EVENT_MAX (64u << 20) /* bytes of one event: a result that lists its files */

struct sse {
    struct buf in;        /* what has come */
    size_t at;            /* what is read of it */
    size_t scanned;       /* no end of line between `at` and here */
    char event[24];       /* of the event that was read last; "" when it has no name */
    uint64_t id;          /* likewise: its number, as far as numbers were sent */
    struct buf body;      /* likewise */
    bool has_data, fresh; /* data of the event that is being read; it is a new one */
};
#define SSE_INIT                                                                                   \
    { .in = BUF_INIT, .body = BUF_INIT, .fresh = true }

void sse_add(struct sse *s, const char *data, size_t len);
/* 1: s->event and s->body are the next event; 0: more has to come first; -1: no such stream. */
int sse_next(struct sse *s, struct err *e);
void sse_done(struct sse *s);
