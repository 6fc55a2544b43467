#pragma once
/* HTTP/1.1 on our loop, through libmicrohttpd. Knows requests and replies, and nothing of what they
 * are about.
 *
 * Life of a request: on_request when its headers are there; it either replies at once or says how
 * it wants the body (http_take_…) and is called again when that has come. A reply may come later,
 * from anywhere in the loop: the connection sleeps meanwhile, and `on_gone` tells if the client has
 * left. After a reply has begun and on_gone or on_finished was called, the request is gone.
 *
 * Nothing here waits for anybody: a body that nobody can take yet and a reply that the client does
 * not read cost one bounded buffer each. When all of those together are too much, the connections
 * whose clients have taken nothing for longest are cut. */

#include "base/buf.h"
#include "base/err.h"
#include "base/rope.h"
#include "http/form.h"
#include "loop/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http;
struct http_req;

struct http_options {
    struct loop *loop; /* borrowed */
    void *arg;
    void (*on_request)(void *arg, struct http_req *r);
    void (*on_reply)(void *arg); /* or NULL: before any answer is on its way */
    /* Every request that got an answer or was cut, for logs and counters. */
    void (*on_finished)(void *arg, struct http_req *r);
    unsigned max_connections;
    uint32_t header_s;    /* until a connection's first request has all its headers */
    uint32_t idle_s;      /* from one reply to the next request's headers */
    uint32_t body_step_s; /* in each such step at least HTTP_SLOWEST bytes of a body must come */
    size_t bodies_max;    /* bytes of all bodies that are kept whole; see http_take_body */
    size_t reply_max;   /* bytes of one stream or WebSocket that wait for its reader; 0: no bound */
    size_t replies_max; /* bytes that wait for all readers together; 0: no bound */
};
#define HTTP_SMALL_BODY  (64u << 10)
#define HTTP_SMALL       (64u << 10) /* a reply up to this is made at once */
#define HTTP_SLICE       (32u << 10) /* a larger reply is made in steps of so many bytes */
#define HTTP_LARGE       (1u << 20)  /* a reply that is known to be larger, in steps of */
#define HTTP_LARGE_SLICE (96u << 10)
#define HTTP_SLOWEST     1024
#define HTTP_HIGH_WATER  (256u << 10) /* bytes of a stream that wait for a slow reader */
#define HTTP_LOW_WATER   (64u << 10)

int http_new(const struct http_options *o, struct http **ret, struct err *e);
/* Takes a listening socket, TCP or unix. With a name (or NULL) it is a door: all that comes in by
 * it bears that name. */
int http_listen(struct http *h, int *fd, const char *door, struct err *e);
/* Closes the door. What came in by it goes on bearing its name, and never another one's. */
void http_close_door(struct http *h, const char *door);
/* No new connections; idle ones are closed, the others after their reply. */
void http_drain(struct http *h);
unsigned http_connections(const struct http *h);
unsigned http_most_connections(const struct http *h); /* so many have descriptors */
uint64_t http_evicted(const struct http *h);          /* closed for a newcomer; see http_settle */
size_t http_bodies(const struct http *h);             /* bytes that count against bodies_max */
/* Bytes that count against replies_max; connections that were cut because of either bound. */
size_t http_replies(const struct http *h);
uint64_t http_replies_cut(const struct http *h);

/* ---- the request ---- */
const char *http_method(const struct http_req *r);
const char *http_path(const struct http_req *r); /* decoded; always begins with a slash */
/* The first value of a header or of a query parameter (decoded), or NULL. */
const char *http_header(const struct http_req *r, const char *name);
const char *http_query(const struct http_req *r, const char *name);
/* The query parameters one by one; false after the last. */
bool http_query_at(const struct http_req *r, unsigned i, const char **ret_name,
                   const char **ret_value);
const char *http_raw_path(const struct http_req *r);  /* as it came */
const char *http_raw_query(const struct http_req *r); /* likewise, or NULL */
typedef void http_header_fn(void *arg, const char *name, const char *value);
void http_each_header(const struct http_req *r, http_header_fn *fn, void *arg);
bool http_has_body(const struct http_req *r);    /* or may have one of no bytes, in chunks */
bool http_is_unix(const struct http_req *r);     /* came through a unix socket */
const char *http_door(const struct http_req *r); /* the door it came in by; or NULL */
uint64_t http_born_ns(const struct http_req *r);
/* How many bytes the bodies and messages of one account hold, and may hold. Lives as long as any of
 * them counts. */
struct http_account {
    size_t bytes, most;
};
/* The handlers know who sent the request. Until it is over, its connection is not closed for a
 * newcomer, as waiting connections are; and what the request holds also counts for the account
 * (NULL: for none). */
void http_settle(struct http_req *r, struct http_account *a);
/* A pointer that the handlers keep with the request. */
void http_set_user(struct http_req *r, void *user);
void *http_user(const struct http_req *r);
/* A second one, for whoever answers in their place. */
void http_set_guest(struct http_req *r, void *guest);
void *http_guest(const struct http_req *r);
int http_status(const struct http_req *r); /* 0 while there is none */
const char *http_reason(int status);       /* "Not Found" */
uint64_t http_bytes_in(const struct http_req *r), http_bytes_out(const struct http_req *r);

/* ---- its body ---- */
typedef void http_fn(struct http_req *r);
struct http_take {
    size_t max;
    http_fn *whole, *too_large, *no_room;
};
/* All of it, in http_body() until `whole` returns. More than `max` bytes: `too_large` replies, at
 * once if the request says so itself; otherwise the rest is read up to a bound and thrown away. In
 * the same way `no_room` replies when all requests together would hold more than bodies_max, or
 * those of the account more than its most. A body counts as it comes, since announcing one costs
 * nothing, and until its request is over; small ones do not count, so that a few large ones cannot
 * keep everybody out. */
void http_take_body(struct http_req *r, const struct http_take *how);
const struct buf *http_body(const struct http_req *r);
struct buf http_move_body(struct http_req *r); /* the caller owns it from here on */
/* The bytes of a body (see http_take_body) go on counting after its request, until
 * http_uncount. */
struct http_count {
    struct http *http;
    struct http_account *account;
    size_t bytes;
};
struct http_count http_move_count(struct http_req *r);
void http_uncount(struct http_count *c);
/* What was made of the body takes more bytes than the body, or fewer. False: there is no room. */
bool http_count_more(struct http_count *c, size_t bytes);
void http_count_less(struct http_count *c, size_t bytes);
/* The length that the request announces; 0 also when it announces none, as with chunks. */
uint64_t http_body_length(const struct http_req *r);

/* multipart/form-data, piece by piece; false from `piece` means that it has replied. `end` when all
 * has come. -1 when the request is not of that kind. */
int http_take_form(struct http_req *r, bool (*piece)(struct http_req *r, const struct form_part *p),
                   http_fn *end);
/* In `end`: false when the form's last boundary is missing, so that its last part is cut off. */
bool http_form_is_whole(const struct http_req *r);

/* As it comes, until there is a reply; `end` when all has come. When the reply
 * is there before, the rest is read and thrown away, so that a client that first sends and then
 * reads gets it: up to a bound, and not if the client waits for leave to send. */
void http_take_stream(struct http_req *r,
                      void (*piece)(struct http_req *r, const char *data, size_t len),
                      http_fn *end);
/* In on_request, or when a piece has come: nothing more of the body is read until http_proceed, or
 * until there is a reply. */
void http_hold(struct http_req *r);
void http_proceed(struct http_req *r);

struct http_tunnel_options {
    const void *early;
    size_t len;
    uint64_t idle_ms;
    uint64_t owner; /* whose share of the turns it takes: see loop/share.h */
};

/* ---- the reply: one of these, once ---- */
/* Before the reply; as often as wanted. */
void http_add_header(struct http_req *r, const char *name, const char *value);
void http_reply(struct http_req *r, int status, const char *type, const void *data, size_t len);
/* A reply of any size, made slice by slice as the client takes it; takes the rope. */
void http_reply_rope(struct http_req *r, int status, const char *type, struct rope *rope);
/* The same for what is not in memory. `more` adds about HTTP_SLICE bytes, in a millisecond at most;
 * it may add none and go on in another turn of the loop. False: there is no more. It is first
 * called at once. */
struct http_source {
    bool (*more)(struct http_source *s, struct buf *to);
    void (*free)(struct http_source *s); /* once, also when there is no reply */
    size_t holds; /* bytes that nobody else holds; they count as a reply's do */
};
void http_reply_from(struct http_req *r, int status, const char *type, struct http_source *s);
/* Replies, and closes the connection afterwards. */
void http_refuse(struct http_req *r, int status, const char *type, const void *data, size_t len);
/* These bytes of a regular file; takes the descriptor. */
void http_reply_file(struct http_req *r, int status, const char *type, int *fd, uint64_t from,
                     uint64_t size);
/* Chunks that come as they are written. */
void http_stream(struct http_req *r, int status, const char *type);
/* The same of so many bytes in all. Of a reply to HEAD none is written, whatever the size. */
void http_stream_of(struct http_req *r, int status, uint64_t size);
void http_write(struct http_req *r, const void *data, size_t len);
void http_write_rope(struct http_req *r, struct rope *rope); /* takes it */
/* Bytes without a meaning that may be written at any time, to find out whether the client is
 * there. */
void http_set_sign(struct http_req *r, const char *sign);
/* There is no such sign, and somebody works on the reply as long as it is not through: a client
 * that sends no more once it has begun counts as gone. */
void http_set_for_client(struct http_req *r);
void http_end(struct http_req *r);
/* The reply 101: from then on the client's bytes go to that socket, and the other way round, until
 * both have ended or nobody has sent anything for so long. Takes the descriptor; `early` is what it
 * has said already. Headers are added before: Upgrade and what belongs to it. */
void http_tunnel(struct http_req *r, int *fd, const struct http_tunnel_options *o);
/* The reply cannot be completed: the connection is cut, so that nobody takes a part of the reply
 * for the whole. */
void http_abort(struct http_req *r);
/* Bytes that were written and that the client has not taken. */
size_t http_backlog(const struct http_req *r);

/* Called when the backlog has fallen below the low water mark again. */
void http_on_drain(struct http_req *r, http_fn *fn);
/* Called once if the client leaves before the reply is complete; no reply is possible after it. */
void http_on_gone(struct http_req *r, http_fn *fn);
/* Whether that has happened already: whoever sets a function now will not be called. */
bool http_is_gone(const struct http_req *r);
