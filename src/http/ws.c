/* See ws.h. ws_handshake.c has the part before the first frame; ws_frames.c reads and writes frames
 * through libwslay.
 *
 * A WebSocket begins as the reply to its request. When the library has sent that, it hands over the
 * socket and what it has read beyond the head (ws_upgraded); from then on the socket is watched
 * here until end(), which gives it back to be closed. The library then says that the request is
 * over, and the WebSocket is freed with it: never inside one of its own callbacks. Each WebSocket
 * reads when its turn comes, a few frames at a time, and sends likewise.
 *
 * SECURITY: a peer may send thousands of frames that each want an answer, and a message may go to a
 * thousand peers, who may all leave at once, and leave thousands behind. So reading has a share of
 * each turn of the loop, and sending has one, with dropping what nobody will read and with ending.
 *
 * libwslay sends a close frame before everything that waits; so libwslay gets ours only when
 * nothing waits any more. Then the peer has a while to answer with its own; we throw away whatever
 * else it sends, since closing a socket with unread bytes would reset the connection and might take
 * the close frame with it. */

#include "http/ws.h"

#include "base/clock.h"
#include "base/list.h"
#include "http/http_held.h"
#include "http/ws_frames.h"
#include "http/ws_internal.h"
#include "http/ws_queue.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define READING_NS 2000000u /* of a turn, for all WebSockets */
#define SENDING_NS 2000000u /* likewise */
#define CLOSING_NS 100000u  /* the library's work when it gets a socket back, about */
#define PING_MS    20000
#define SILENT_MS  60000
#define GOODBYE_MS 5000 /* for the peer's half of closing */
#define FRAME_COST 128u /* memory of a waiting control frame, about */

static struct loop *loop_of(const struct ws *w) {
    return w->req->http->o.loop;
}

/* ---- the end ---- */

/* At the end of the batch: a WebSocket may be freed as soon as the library has its socket back. */
static void soon(struct ws *w) {
    if (w->handle)
        loop_share_wait(&w->req->http->sending, &w->sends);
}

static void end(struct ws *w) {
    if (w->over)
        return;
    w->over = true;
    ws_queue_give_up(w);
    http_weigh(w->req);
    loop_unwatch(loop_of(w), &w->watch);
    loop_timer_stop(loop_of(w), &w->timer);
    loop_share_leave(&w->reads);
    (void)LIST_REMOVE(&w->req->http->sockets, w, next);
    soon(w);
    w->o.on_closed(w->o.arg);
}

static void give_back(struct ws *w) {
    loop_share_charge(&w->req->http->sending, CLOSING_NS);
    MHD_upgrade_action(w->handle, MHD_UPGRADE_ACTION_CLOSE);
    w->handle = NULL;
    http_soon(w->req->http);
}

void ws_over(struct ws *w) {
    end(w);
}

static void drop_all(struct ws *w) {
    while (!ws_queue_drop(w))
        ;
}

void ws_cut(struct ws *w) {
    end(w);
    if (!w->handle)
        drop_all(w);
}

size_t ws_held(const struct ws *w) {
    return w->over ? 0 : ws_backlog(w);
}

size_t ws_owes(const struct ws *w) {
    return w->over ? 0 : ws_backlog(w) - w->queue_bytes;
}

void ws_free(struct ws *w) {
    if (!w)
        return;
    loop_share_leave(&w->sends);
    w->over = true;
    drop_all(w);
    wslay_event_context_free(w->frames);
    buf_done(&w->early);
    free(w);
}

/* ---- turns ---- */

static bool wants_write(const struct ws *w) {
    return w->queue || wslay_event_want_write(w->frames);
}

/* First what has begun, then control, then the rest; nothing after a close frame. */
static bool give(struct ws *w, struct loop_share *s) {
    if (ws_queue_is_inside(w) && !ws_queue_send(w, false, s))
        return false;
    if (ws_queue_is_inside(w))
        return true;
    if (wslay_event_send(w->frames) != 0)
        return false;
    if (wslay_event_get_close_sent(w->frames))
        ws_queue_give_up(w);
    if (!w->gives_up && !wslay_event_want_write(w->frames) && !ws_queue_send(w, true, s))
        return false;
    if (w->closing && !w->said && !wants_write(w)) {
        w->said = true;
        wslay_event_queue_close(w->frames, (uint16_t)w->code, (const uint8_t *)w->reason,
                                strlen(w->reason));
        return wslay_event_send(w->frames) == 0;
    }
    return true;
}

/* False when both have said that it is over. */
static bool part(struct ws *w) {
    bool sent = wslay_event_get_close_sent(w->frames);
    bool got = wslay_event_get_close_received(w->frames);
    if (sent && got)
        return false;
    if ((sent || got) && !w->parting) {
        w->parting = true;
        loop_timer_in_ms(loop_of(w), &w->timer, GOODBYE_MS);
    }
    if (sent && !wslay_event_want_read(w->frames)) /* the peer broke the rules: we cannot read on */
        shutdown(w->watch.fd, SHUT_WR);
    return true;
}

static uint32_t interest(const struct ws *w) {
    bool reads = ws_frames_may_read(w) || wslay_event_get_close_sent(w->frames);
    bool writes = wants_write(w) && !w->sends.waits_for; /* a waiting sender gets its turn anyway */
    return EPOLLRDHUP | (reads ? EPOLLIN : 0) | (writes ? EPOLLOUT : 0);
}

static void watch_again(struct ws *w) {
    struct err e;
    if (loop_rewatch(loop_of(w), &w->watch, interest(w), &e) < 0)
        end(w);
}

/* SECURITY: `reads` only in this WebSocket's turn to read. Every send leads here, and whatever we
 * read may be answered by a send. */
static void turn(struct ws *w, bool reads) {
    struct http *h = w->req->http;
    struct loop_share *s = reads ? &h->reading : &h->sending;
    if (w->gives_up && !reads)
        (void)ws_queue_drop(w);
    if (!give(w, s) || (reads && (!ws_frames_take(w) || !give(w, s))) || !part(w)) {
        end(w);
        return;
    }
    http_weigh(w->req);
    if (w->gives_up)
        soon(w);
    watch_again(w);
    if (w->over)
        return;
    if (w->high && ws_backlog(w) < HTTP_LOW_WATER) {
        w->high = false;
        if (w->o.on_drain && !w->closing)
            w->o.on_drain(w->o.arg);
    }
    if (ws_frames_early(w) && ws_frames_may_read(w) &&
        wslay_event_want_read(w->frames)) /* read already: no event will tell */
        loop_share_wait(&w->req->http->reading, &w->reads);
}

static void ws_on_turn_to_read(struct loop_sharer *who) {
    struct ws *w = who->arg;
    uint64_t began_ns = w->o.on_cost ? thread_cpu_ns() : 0;
    turn(w, true);
    if (w->o.on_cost && !w->over)
        w->o.on_cost(w->o.arg, thread_cpu_ns() - began_ns);
}

static void ws_on_turn_to_send(struct loop_sharer *who) {
    struct ws *w = who->arg;
    if (!w->over)
        turn(w, false);
    else if (ws_queue_drop(w))
        give_back(w);
    else
        soon(w);
}

static void send_now(struct ws *w) {
    struct loop_share *s = &w->req->http->sending;
    if (!loop_share_begin(s, &w->sends)) {
        watch_again(w);
        return;
    }
    turn(w, false);
    loop_share_end(s);
}

/* When a peer has stopped sending while we do not read from it, it counts as gone. */
static void ws_on_ready(struct watch *watch, uint32_t events) {
    struct ws *w = watch->arg;
    if (events & (EPOLLHUP | EPOLLERR) || (events & EPOLLRDHUP && !(interest(w) & EPOLLIN)))
        end(w);
    else if (events & EPOLLOUT)
        send_now(w);
    if (!w->over && events & (EPOLLIN | EPOLLRDHUP))
        loop_share_wait(&w->req->http->reading, &w->reads);
}

static void ws_on_timer(struct timer *t) {
    struct ws *w = t->arg;
    uint64_t now = now_ns();
    if (w->held)
        w->heard_ns = now; /* nobody listened */
    if (w->parting || now - w->heard_ns >= ms_to_ns(SILENT_MS)) {
        end(w);
        return;
    }
    if (!wants_write(w)) {
        const struct wslay_event_msg ping = {.opcode = WSLAY_PING};
        wslay_event_queue_msg(w->frames, &ping);
        soon(w);
    }
    loop_timer_in_ms(loop_of(w), t, PING_MS);
}

/* ---- the beginning ---- */

void ws_upgraded(void *arg, struct MHD_Connection *mhd, void *context, const char *extra,
                 size_t len, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle) {
    struct ws *w = arg;
    struct http_conn *c = w->req->conn;
    struct http *h = w->req->http;
    struct err e;
    (void)mhd, (void)context;
    loop_unwatch(h->o.loop, &c->watch); /* a descriptor has one watch */
    loop_timer_stop(h->o.loop, &c->timer);
    loop_timer_stop(h->o.loop, &c->probe);
    w->handle = handle;
    LIST_PUSH(&h->sockets, w, next);
    /* Messages are small and many: none waits for the peer to acknowledge the last. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    buf_add(&w->early, extra, len);
    w->heard_ns = now_ns();
    if (loop_watch(h->o.loop, &w->watch, fd, EPOLLIN | EPOLLRDHUP, &e) < 0) {
        end(w);
        return;
    }
    loop_timer_in_ms(h->o.loop, &w->timer, PING_MS);
    if (h->draining)
        ws_close(w, WS_GOING_AWAY, "the server stops");
    soon(w); /* not now: we are inside the library */
}

void ws_init(struct http *h) {
    loop_share_init(&h->reading, h->o.loop, READING_NS);
    loop_share_init(&h->sending, h->o.loop, SENDING_NS);
}

struct ws *ws_new(struct http_req *r, const struct ws_options *o) {
    struct ws *w = xcalloc(1, sizeof *w);
    *w = (struct ws){.req = r, .o = *o, .early = BUF_INIT, .queue_end = &w->queue};
    w->watch = (struct watch){.fd = -1, .fn = ws_on_ready, .arg = w};
    w->timer = (struct timer){.fn = ws_on_timer, .arg = w};
    w->reads = (struct loop_sharer){.fn = ws_on_turn_to_read, .arg = w, .owner = o->owner};
    w->sends = (struct loop_sharer){.fn = ws_on_turn_to_send, .arg = w, .owner = o->owner};
    ws_frames_init(w);
    return w;
}

/* ---- for owners ---- */

size_t ws_backlog(const struct ws *w) {
    return w->queue_bytes + ws_queue_cost(w) + wslay_event_get_queued_msg_length(w->frames) +
           FRAME_COST * wslay_event_get_queued_msg_count(w->frames);
}

static void send_message(struct ws *w, uint8_t opcode, struct blob *of) {
    if (w->over || w->closing)
        return;
    if (http_is_too_much(w->req->http, ws_backlog(w), of->bytes.len + FRAME_COST,
                         &w->req->beyond)) {
        ws_give_up(w, WS_TRY_LATER, "the client does not read");
        return;
    }
    ws_queue_add(w, opcode, of);
    if (ws_backlog(w) > HTTP_HIGH_WATER)
        w->high = true;
    http_weigh(w->req);
    soon(w);
}

static void send_copy(struct ws *w, uint8_t opcode, const void *data, size_t len) {
    struct buf copy = BUF_INIT;
    buf_add(&copy, data, len);
    struct blob *of = blob_take(&copy);
    send_message(w, opcode, of);
    blob_unref(of);
}

void ws_send_blob(struct ws *w, bool binary, struct blob *of) {
    send_message(w, binary ? WSLAY_BINARY_FRAME : WSLAY_TEXT_FRAME, of);
}

void ws_send_text(struct ws *w, const char *text, size_t len) {
    send_copy(w, WSLAY_TEXT_FRAME, text, len);
}

void ws_send_binary(struct ws *w, const void *data, size_t len) {
    send_copy(w, WSLAY_BINARY_FRAME, data, len);
}

void ws_give_up(struct ws *w, enum ws_code code, const char *reason) {
    if (w->over || w->closing)
        return;
    ws_queue_give_up(w);
    w->req->http->replies_cut++;
    http_weigh(w->req);
    ws_close(w, code, reason);
}

void ws_close(struct ws *w, enum ws_code code, const char *reason) {
    if (w->over || w->closing)
        return;
    w->closing = true;
    w->held = false; /* we read the peer's answer, and drop its messages */
    w->code = code;
    w->reason = reason;
    soon(w);
}

bool ws_is_closing(const struct ws *w) {
    return w->over || w->closing;
}

void ws_hold(struct ws *w, bool hold) {
    if (w->over || w->closing || w->held == hold)
        return;
    w->held = hold;
    soon(w);
}

struct http_count ws_move_count(struct ws *w) {
    return http_move_count(w->req);
}

void ws_drain(struct http *h) {
    for (struct ws *w = h->sockets; w; w = w->next)
        ws_close(w, WS_GOING_AWAY, "the server stops");
}
