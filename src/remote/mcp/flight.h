#pragma once
/* One request of ours to the server that is under way. What becomes of it is its owner's affair:
 * `on_stream` gets a stream of events as it comes, `on_end` the end, with any other body. All are
 * on the multi handle of one struct remote. */

#include "base/buf.h"
#include "base/err.h"
#include "remote/net/call.h"

#include <curl/curl.h>
#include <stdbool.h>

struct flight;

struct flight_kind {
    /* Bytes of a 2xx of type text/event-stream. False: not now (flights_resume). It may set
     * too_large, which ends the flight. NULL, and with any other type: the body is kept in
     * reply.body. */
    bool (*on_stream)(struct flight *f, const char *data, size_t len);
    /* A header, without its newline; of every answer. Or NULL. */
    void (*on_header)(struct flight *f, const char *line, size_t len);
    /* It is over; `e` is NULL when there was a whole answer. Not called after flight_drop. */
    void (*on_end)(struct flight *f, const struct err *e);
    /* What the owner's struct has besides. Or NULL. */
    void (*on_free)(struct flight *f);
};

struct flight {
    struct flight *next;
    const struct flight_kind *kind;
    struct flights *of; /* borrowed */
    struct buf sent;    /* the body of the request; or: */
    int from;           /* owned: a file that is it; or -1 */
    int to;             /* owned: where the body of a 2xx goes instead of reply.body; or -1 */
    struct remote_reply reply;
    CURL *easy;
    struct curl_slist *headers;
    char why[CURL_ERROR_SIZE];
    bool paused, too_large;
    bool is_sse; /* by its media type */
};

struct flights {
    struct remote *remote; /* borrowed */
    struct flight *list;
    unsigned n;
};

/* A struct of that size whose first member is a flight. */
void *flight_new(size_t size, const struct flight_kind *kind);
/* Instead of flight_start. */
void flight_free(struct flight *f);
/* `sent` may have been filled. Whatever comes of it, the struct is the flight's now. */
int flight_start(struct flights *all, struct flight *f, const char *method, const char *path,
                 struct err *e);
/* Before flight_start. */
void flight_header(struct flight *f, const char *line);
/* Takes it back: its connection is closed, and on_end is not called. */
void flight_drop(struct flight *f);
/* Those that said "not now" go on. */
void flights_resume(struct flights *all);
/* What libcurl has to do now, and the ends of those that are over. */
int flights_step(struct flights *all, struct err *e);
void flights_drop_all(struct flights *all);
