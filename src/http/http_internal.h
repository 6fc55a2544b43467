#pragma once
/* The inside of a request and of the server; for http*.c only. */

#include "http/framing.h"
#include "http/http.h"
#include "loop/acceptor.h"

#include <microhttpd.h>

struct http_conn;
struct ws;

#define MAX_PARAMS 32
#define SECOND_MS  1000ull

#define HTTP_LEAVING                                                                               \
    256u /* connections that may be on their way out beside the most there may be */

/* A connection that may be closed for a newcomer; see http_accept.c. */
struct waiter {
    struct waiter *older, *newer;
    bool listed;
    void (*evict)(struct waiter *w);
    void *arg;
};

struct http {
    struct http_options o;
    struct MHD_Daemon *daemon; /* owned */
    struct watch watch;        /* of its epoll descriptor */
    struct timer timer;        /* of its own timeouts */
    struct deferred run;       /* somebody was woken up */
    struct listener {
        struct http *http;
        struct acceptor acceptor;
        int fd; /* owned */
    } listeners[HTTP_LISTENERS];
    unsigned nlisteners;
    unsigned nconns;
    struct waiter *oldest, *newest; /* by since when they wait */
    unsigned leaving;               /* connections that were evicted and are not closed yet */
    uint64_t evicted;
    struct http_conn **readers; /* owned; borrowed: connections by descriptor; see http_read.c */
    unsigned nreaders;
    size_t bodies;      /* what all requests hold; see http_take_body */
    struct ws *sockets; /* borrowed: the WebSockets that are open */
    bool draining;
    /* http_held.c: what waits for clients */
    size_t replies;
    uint64_t replies_cut;
    struct http_req *idlest, *liveliest; /* by when their clients last took something */
    struct deferred squeeze;
    struct http_req *hungry, **hungry_end; /* wait for their next slice: there were enough */
    uint64_t slices_ns;                    /* that may still be spent on slices in this turn */
    struct timer refill;
};

struct http_conn {
    struct http *http;
    struct MHD_Connection *mhd; /* borrowed */
    int fd;                     /* borrowed */
    bool is_unix;
    bool half;              /* the client sends no more */
    bool lingers;           /* it was answered before its body was read */
    bool leaves;            /* it was evicted */
    struct waiter waiter;   /* while it is not known who asks */
    struct watch watch;     /* for that, and for its leaving */
    struct timer probe;     /* then: whether it is still there */
    struct timer timer;     /* until the next request's headers, or the next step of a body */
    struct framing framing; /* of what the library has read */
    const char *ending;     /* what it is still to read of a head that was cut; or NULL */
    uint64_t requests;      /* how many of them have begun */
    struct deferred ack;    /* of what has come of a body that is not whole */
    struct deferred free_later;
    struct http_req *req;     /* borrowed: the one at hand */
    struct http_req *pending; /* owned: its line was read, its headers may never be */
};

enum req_phase { REQ_NEW, REQ_BODY, REQ_WAITING, REQ_REPLYING, REQ_CUT };

struct http_req {
    struct http *http;
    struct http_conn *conn;
    enum req_phase phase;
    char method[16];
    char *path;      /* owned, and the parameters behind it */
    char *query;     /* owned: as it came, or NULL */
    char *authority; /* owned: the host that the request line names, or NULL */
    const char *uri; /* where it stands in the library's buffer, uri_len bytes; for the check */
    size_t uri_len;
    struct param {
        const char *name, *value; /* borrowed from `path` */
    } params[MAX_PARAMS];
    unsigned nparams;
    void *user;
    uint64_t born_ns, bytes_in, bytes_out, step_bytes;
    int status;
    bool suspended, is_1_0;
    const char *wrong; /* with the path or the query, in words; or NULL */
    /* body */
    struct buf body;
    struct http_take take;
    struct http_account *account; /* borrowed, or NULL: whose `held` is */
    size_t held, thrown;
    http_fn *refused; /* who replies when the rest of the body has been thrown away */
    bool body_done;
    struct form *form; /* owned */
    bool (*piece)(struct http_req *r, const struct form_part *p);
    bool form_stopped;
    void (*stream)(struct http_req *r, const char *data, size_t len);
    bool on_hold;   /* asleep before its body */
    bool beginning; /* on_request is being called */
    /* reply */
    struct MHD_Response *response; /* owned until queued */
    bool queued, streaming, ended, closing;
    struct header {
        char *name, *value;
    } * headers;
    unsigned nheaders;
    struct buf out; /* of a stream: what MHD has not taken */
    size_t out_at;
    struct rope rest;           /* behind it */
    struct http_source *source; /* owned: behind that; or NULL */
    size_t owed;                /* bytes that count in http.replies */
    size_t beyond;              /* bytes that were written above reply_max */
    bool listed, too_slow, is_hungry;
    struct http_req *idler, *livelier, *hungrier;
    const char *sign; /* of life, on a stream; borrowed */
    bool high;        /* the backlog was above the high water mark */
    http_fn *on_drain, *on_gone;
    struct ws *ws; /* owned: what it has become, or NULL */
};

/* http.c */
void http_soon(struct http *h);
void http_req_free(struct http_req *r);
/* http_conn.c */
void http_wake(struct http_req *r);
void http_sleep(struct http_req *r);
void http_cut(struct http_req *r);
struct http_conn *http_conn_of(struct MHD_Connection *mhd);
/* Something of a request came whose body may not be whole. */
void http_conn_ack(struct http_conn *c);
/* The client sends no more: looks whether it is still there. */
void http_conn_probe(struct http_conn *c);
void http_conn_notify(void *arg, struct MHD_Connection *mhd, void **context,
                      enum MHD_ConnectionNotificationCode code);
/* http_accept.c */
void http_accept(struct acceptor *a);
void http_wait(struct http *h, struct waiter *w);   /* as the newest; stays where it is, if it is */
void http_unwait(struct http *h, struct waiter *w); /* not to be evicted */
/* http_linger.c: reads on for a while what the client sends on a connection that is about to be
 * closed, and counts as one until then; false when that cannot be. */
bool http_linger(struct http *h, int fd);
/* http_check.c: what is wrong with the request's head, in words, or NULL. */
const char *http_check_head(struct http_req *r, const char *method, const char *version);
/* Decodes %XX in place; false on a bad escape, a NUL, or a control byte. */
bool http_decode(char *text, bool plus_is_space);
/* The same for what has come of its body; NULL too when only a later request is wrong. */
const char *http_check_framing(const struct http_req *r);
/* The body of a 400, appended. */
void http_refusal(const char *wrong, struct buf *out);
/* http_read.c: the library runs from begin to end; it reads this connection. */
void http_read_begin(struct http *h);
void http_read_end(void);
void http_read_add(struct http_conn *c);
void http_read_remove(struct http_conn *c);
/* http_body.c: takes what has come; true when it took all. */
void http_body_data(struct http_req *r, const char *data, size_t len);
void http_body_end(struct http_req *r);
void http_body_done(struct http_req *r);
/* Counts what a request has or will have in memory; false when that is too much for all together,
 * or for whose it is. */
bool http_reserve(struct http_req *r, size_t len);
void http_release(struct http_req *r);
/* There is a reply: whether the body is still read before it. */
bool http_body_drains(const struct http_req *r);
/* http_reply.c */
enum MHD_Result http_queue(struct http_req *r);
/* The reply after which the connection is the WebSocket's; false when none is possible. */
bool http_switch(struct http_req *r, struct ws *w, MHD_UpgradeHandler fn);
/* http_held.c: the buffers of a reply, of one and of all. */
void http_held_init(struct http *h);
/* Whether one who has `backlog` bytes to read is to get no more than that. */
bool http_is_too_much(const struct http *h, size_t backlog, size_t len, size_t *beyond);
void http_weigh(struct http_req *r);                 /* what it holds has changed */
void http_took(struct http_req *r);                  /* its client has taken something */
void http_let_go(struct http_req *r);                /* of all that it holds */
bool http_may_slice(struct http *h);                 /* or enough was made in this turn */
void http_sliced(struct http *h, uint64_t since_ns); /* one was made */
void http_slice_later(struct http_req *r);           /* wakes it in another turn */
/* ws.c: the request is over; it is freed; the server stops. */
void ws_over(struct ws *w);
void ws_free(struct ws *w);
void ws_drain(struct http *h);
size_t ws_held(const struct ws *w); /* bytes that wait for its peer */
size_t ws_owes(const struct ws *w); /* those among them that nobody else counts */
void ws_cut(struct ws *w);          /* at once */
