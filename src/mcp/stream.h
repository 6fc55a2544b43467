#pragma once
/* Where the answers to one POST go: a JSON reply if they are there soon, else a stream of events;
 * in the legacy era also what a client reads that comes back for the rest (Last-Event-ID). For this
 * directory only.
 *
 * A stream without a client is kept for STREAM_KEPT_MS after its end, if anybody could come back.
 * SECURITY: all that is kept is bounded in bytes and number; the oldest goes first. */

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct mcp;
struct stream;
struct visit;

#define STREAM_SOON_MS  1000   /* then the stream is opened */
#define STREAM_ALIVE_MS 10000  /* between two signs of life */
#define STREAM_KEPT_MS  300000 /* after the end, for who comes back */
#define STREAM_RETRY_MS 1000   /* what clients are told to wait before they do */
#define STREAMS_MAX     1000   /* that are kept without a client; half of them for one owner */
#define STREAM_BYTES    (32u << 20)

/* For the answers to `waiting` requests of the visit; `is_batch`: as an array. */
struct stream *stream_new(struct visit *v, unsigned waiting, bool is_batch);
/* Whether anything but answers can be sent; opens it. */
bool stream_open(struct stream *s);
/* One more message. */
void stream_message(struct stream *s, const struct buf *message);
/* One of the answers; `status` counts if it is the whole reply. NULL: there will be none. */
void stream_answer(struct stream *s, int status, const struct buf *message);
/* A header of the reply, if that has not begun. */
void stream_header(struct stream *s, const char *name, const char *value);
/* The client is slow: what can be left out is. */
bool stream_is_full(const struct stream *s);
/* The connection is closed while the answer is still to come; the client will ask again. */
void stream_break(struct stream *s, unsigned retry_ms);
/* Somebody else answers the visit: the stream is gone. Whether its events have begun. */
bool stream_give_up(struct stream *s);
/* The client has left. */
void stream_left(struct stream *s);
/* The visit is a GET with that Last-Event-ID: false if there is no such stream of its owner. */
bool stream_resume(struct visit *v, const char *last);
