#pragma once
/* The inside of a WebSocket, for ws*.c and for the end of its request. */

#include "http/internal.h"
#include "http/ws.h"

#include <wslay/wslay.h>

struct ws {
    struct http_req *req; /* borrowed: its owner */
    struct ws *next;      /* of those that are open */
    struct ws_options o;
    wslay_event_context_ptr frames;           /* owned */
    struct MHD_UpgradeResponseHandle *handle; /* NULL before and after the socket is ours */
    struct watch watch;                       /* of the socket */
    struct timer timer;                       /* of pings; at the end, for the peer's goodbye */
    struct loop_sharer reads;                 /* there is something to read */
    struct loop_sharer sends; /* there is something to send, or to end: see soon() */
    struct buf early;         /* what came with the handshake */
    size_t early_at;
    size_t budget, frames_left; /* bytes and frames that may still be read in this turn */
    uint64_t inside;            /* bytes that are still to come of the frame at hand */
    uint64_t heard_ns;          /* when the peer last sent or took something */
    size_t taken;               /* bytes that it took since http_took was told */
    struct ws_message *queue, **queue_end; /* owned: what waits for it; ws_queue.c */
    size_t queue_bytes, queue_n;
    unsigned pieces;      /* of the message that is coming */
    size_t coming;        /* its bytes, as far as they are known */
    bool held, high;      /* the owner is slow; the peer is */
    bool gone, malformed; /* the peer has left; what it sends is no WebSocket */
    bool closing, said, parting, over;
    bool gives_up;      /* what waits for the peer is to be dropped */
    enum ws_code code;  /* once it is closing */
    const char *reason; /* a constant */
};

void ws_init(struct http *h);
struct ws *ws_new(struct http_req *r, const struct ws_options *o);
/* For the library, when it has sent the reply. */
void ws_upgraded(void *arg, struct MHD_Connection *mhd, void *context, const char *extra,
                 size_t len, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle);

/* The request is over; it is freed; the server stops; the connection is cut. */
void ws_over(struct ws *w);
void ws_free(struct ws *w);
void ws_drain(struct http *h);
void ws_cut(struct ws *w);
size_t ws_held(const struct ws *w); /* bytes that wait for its peer */
size_t ws_owes(const struct ws *w); /* those among them that nobody else counts */
