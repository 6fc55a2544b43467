#pragma once
/* Server-sent events whose output goes to our stdout and stderr. They are read one at a time: while
 * what one of them prints waits to be written, no further bytes are taken from the network, so that
 * a slow reader slows the program down. */

#include "base/buf.h"
#include "base/err.h"
#include "cli/screen.h"
#include "remote/net/sse.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_t;
struct remote_sink;

/* An event with its name; it may print, and say that it was the last (`over`). `event` is borrowed.
 * -1: the stream makes no sense. */
typedef int events_fn(void *arg, const char *name, struct json_t *event, struct err *e);

struct events {
    events_fn *fn;
    void *arg; /* of fn */
    struct sse sse;
    struct buf output; /* of the event that was read last */
    size_t written;
    int fd; /* for it */
    struct screen screens[2];
    bool over, broken; /* broken: `why` says more */
    bool unread;       /* nobody reads our output */
    struct err why;
};
#define EVENTS_INIT                                                                                \
    { .sse = SSE_INIT, .output = BUF_INIT }

/* The output of the event at hand, on one of our two streams: as much of it as may be shown. */
void events_print(struct events *ev, int fd, const char *text, size_t len);
/* More of it. */
void events_add(struct events *ev, const char *text, size_t len);
/* Whether all output of the events so far is written. */
bool events_is_written(const struct events *ev);

/* For a request whose answer is such a stream. The argument of its callbacks, also of those that
 * the caller adds, is `ev`. */
struct remote_sink events_sink(struct events *ev);
/* The next connection goes on with this stream. */
void events_resume(struct events *ev);
/* Another stream follows. */
void events_reset(struct events *ev);
void events_done(struct events *ev);
