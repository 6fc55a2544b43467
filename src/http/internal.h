#pragma once
/* The inside of the server, of a connection and of a request; for this directory only. */

#include "http/framing.h"
#include "http/http.h"
#include "http/http_accept.h"
#include "loop/acceptor.h"
#include "loop/share.h"

#include <microhttpd.h>

struct http_conn;
struct tunnel;
struct ws;

#define MAX_PARAMS 32
#define SECOND_MS  1000ull

struct http {
    struct http_options o;
    struct MHD_Daemon *daemon;  /* owned */
    struct watch watch;         /* of its epoll descriptor */
    struct timer timer;         /* of its own timeouts */
    struct deferred run;        /* somebody was woken up */
    struct listener *listeners; /* owned */
    struct newcomer *newcomers; /* owned: came in by a door; the library has yet to look at them */
    unsigned nconns;
    struct http_waiter *oldest, *newest; /* by since when they wait */
    unsigned leaving;                    /* connections that were evicted and are not closed yet */
    uint64_t evicted;
    struct http_conn **readers; /* owned; borrowed: connections by descriptor; see http_read.c */
    unsigned nreaders;
    size_t bodies;                      /* what all requests hold; see http_take_body */
    struct ws *sockets;                 /* borrowed: the WebSockets that are open */
    struct tunnel *tunnels;             /* likewise */
    struct loop_share reading, sending; /* from and to them, in a turn of the loop */
    unsigned giving_up;                 /* those whose messages are about to be dropped */
    bool draining;
    /* http_held.c: what waits for clients */
    size_t replies;
    uint64_t replies_cut;
    struct http_req *idlest, *liveliest; /* by when their clients last took something */
    struct loop_sharer squeeze;          /* in `sending` */
    /* http_turn.c: who does something in a turn of the loop */
    struct http_conn *queue, **queue_end; /* borrowed: those who were put off */
    uint64_t tickets;                     /* that they got so far */
    struct timer next_turn;
    uint64_t turn, spent_ns; /* by the library in that turn, */
    uint64_t began_ns;       /* and since then, unless 0 */
};

struct http_conn {
    struct http *http;
    struct MHD_Connection *mhd; /* borrowed */
    int fd;                     /* borrowed */
    char *door;                 /* owned: it came in by; or NULL */
    bool is_unix;
    bool half;                 /* the client sends no more */
    bool lingers;              /* it was answered before its body was read */
    bool leaves;               /* it was evicted */
    bool put_off;              /* it waits for its turn */
    bool closed;               /* the library has let go of it */
    bool drained;              /* of its socket nothing is left to read, as far as was seen */
    uint64_t ticket;           /* for the queue of those */
    uint64_t turn;             /* of the loop, that was its own last, */
    uint64_t free_turn;        /* and in which it may go, whatever others have spent; */
    uint64_t began_turn;       /* in which its last request has begun */
    uint64_t pieces_turn;      /* of the loop, in which it had */
    unsigned pieces;           /* so many of its body */
    struct http_conn *behind;  /* in the queue of those who wait for theirs */
    struct http_waiter waiter; /* while it is not known who asks */
    struct watch watch;        /* for that, and for its leaving */
    struct timer probe;        /* then: whether it is still there */
    struct timer timer;        /* until the next request's headers, or the next step of a body */
    struct framing framing;    /* of what the library has read */
    const char *ending;        /* what it is still to read of a head that was cut; or NULL */
    uint64_t requests;         /* how many of them have begun */
    struct deferred ack;       /* of what has come of a body that is not whole */
    struct deferred look;      /* of the library, at one whose request has ended early */
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
    char *raw_path;  /* owned: as it came, where that differs; or NULL */
    char *query;     /* owned: as it came, or NULL */
    char *authority; /* owned: the host that the request line names, or NULL */
    const char *uri; /* where it stands in the library's buffer, uri_len bytes; for the check */
    size_t uri_len;
    struct param {
        const char *name, *value; /* borrowed from `path` */
    } params[MAX_PARAMS];
    unsigned nparams;
    void *user, *guest;
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
    bool held_back; /* likewise in the midst of it, as soon as more has come */
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
    bool listed, too_slow;
    struct http_req *idler, *livelier;
    const char *sign; /* of life, on a stream; borrowed */
    bool for_client;  /* it is nothing without its client */
    bool high;        /* the backlog was above the high water mark */
    http_fn *on_drain, *on_gone;
    bool switched;         /* to another protocol: */
    struct ws *ws;         /* owned: what it has become, or NULL */
    struct tunnel *tunnel; /* likewise */
};

/* http.c: runs the library soon, since something changed that it should look at. */
void http_soon(struct http *h);
void http_req_free(struct http_req *r);
