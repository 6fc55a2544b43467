#pragma once
/* The inside of a WebSocket; for ws*.c and the ends of a request only. */

#include "http/http_internal.h"
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
    struct deferred later;
    struct buf early; /* what came with the handshake */
    size_t early_at, budget;
    uint64_t heard_ns;                     /* when the peer last sent or took something */
    size_t taken;                          /* bytes that it took since http_took was told */
    struct ws_message *queue, **queue_end; /* owned: what waits for it; ws_queue.c */
    size_t queue_bytes, queue_n;
    unsigned pieces;      /* of the message that is coming */
    size_t coming;        /* its bytes, as far as they are known */
    bool held, high;      /* the owner is slow; the peer is */
    bool gone, malformed; /* the peer has left; what it sends is no WebSocket */
    bool closing, said, parting, over;
    enum ws_code code;  /* once it is closing */
    const char *reason; /* a constant */
};

/* ws_queue.c */
void ws_queue_add(struct ws *w, uint8_t opcode, struct blob *of);
/* The first message, or as many as the peer takes in a turn. False: it is gone. */
bool ws_queue_send(struct ws *w, bool all);
void ws_queue_drop(struct ws *w, bool all);  /* all, or all that have not begun */
bool ws_queue_is_inside(const struct ws *w); /* a message has begun and is not through */
size_t ws_queue_cost(const struct ws *w);    /* bytes beside those of the messages */
void ws_took(struct ws *w, size_t n);        /* the peer has taken so many bytes */

struct ws *ws_new(struct http_req *r, const struct ws_options *o);
/* For the library, when it has sent the reply. */
void ws_upgraded(void *arg, struct MHD_Connection *mhd, void *context, const char *extra,
                 size_t len, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle);
