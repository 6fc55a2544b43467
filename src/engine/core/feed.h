#pragma once
/* What waits to be written to the stdin of a program or a command, which takes it as it likes. */

#include "base/buf.h"
#include "loop/loop.h"

#include <stdbool.h>

struct json_t;

struct feed {
    struct loop *loop; /* borrowed */
    struct watch watch;
    struct json_t *text; /* owned: a string that comes before `data`; or NULL */
    struct buf data;
    size_t at;   /* in the text while there is one, else in `data` */
    bool closed; /* no more comes: behind what waits is the end */
    size_t most; /* bytes that a call of feed_pump writes; 0: as many as are taken */
    /* The descriptor has room again: feed_pump is called. */
    void (*on_room)(void *arg);
    void *arg;
};

/* The loop, on_room and arg are set. */
void feed_init(struct feed *f);
void feed_done(struct feed *f);
size_t feed_backlog(const struct feed *f); /* bytes */
void feed_add(struct feed *f, const void *data, size_t len);
/* What is written next, and perhaps not all of it. */
const void *feed_next(struct feed *f, size_t *ret_len);

enum fed {
    FED_SOME, /* the rest waits until there is room; with a `most`, for the next call */
    FED_ALL,
    FED_GONE /* nobody reads any more: what waited is dropped */
};
/* Writes what the descriptor takes now; adds how many bytes that were. */
enum fed feed_pump(struct feed *f, int fd, size_t *taken);
/* What waits is forgotten. */
void feed_drop(struct feed *f);
/* Before the descriptor is closed. */
void feed_stop(struct feed *f);
