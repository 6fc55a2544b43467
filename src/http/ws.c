/* See ws.h. ws_handshake.c has the part before the first frame.
 *
 * A WebSocket begins as the reply to its request. When the library has sent that, it hands over the
 * socket and what it has read beyond the head (on_upgrade); from then on the socket is watched here
 * until end(), which gives it back to be closed. The library then says that the request is over,
 * and the WebSocket is freed with it: never inside one of its own callbacks. What has come is read
 * when its turn comes, a few frames at a time, and what waits for the peer is sent likewise.
 *
 * SECURITY: a peer may send thousands of frames that each want an answer, and a message may go to a
 * thousand peers, who may all leave at once. So reading has a share of each turn of the loop, and
 * sending has one, with dropping what nobody will read and with ending.
 *
 * libwslay sends a close frame before everything that waits; so ours is given to it only when
 * nothing waits any more. After that frame the peer has a while to answer with its own; what else
 * it sends is thrown away meanwhile, since closing a socket with unread bytes would reset the
 * connection and might take the close frame with it. */

#include "http/ws.h"

#include "base/clock.h"
#include "base/list.h"
#include "http/http_body.h"
#include "http/http_held.h"
#include "http/ws_internal.h"
#include "http/ws_queue.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define READING_NS 2000000u /* of a turn, for all WebSockets */
#define SENDING_NS 2000000u /* likewise */
#define CLOSING_NS 100000u  /* what the library does for one that it gets back, about */
#define PING_MS    20000
#define SILENT_MS  60000
#define GOODBYE_MS 5000                  /* for the peer's half of closing */
#define READ_MAX   (128u << 10)          /* bytes in one turn of the loop */
#define FRAMES_MAX 32u                   /* in one turn of the loop */
#define FRAME_MIN  6u                    /* bytes of a client's frame: its head */
#define PIECES_MAX 4096u                 /* of a message: each costs libwslay a few allocations */
#define FRAME_COST 128u                  /* what a frame of control that waits takes, about */
#define FULL       (2 * HTTP_HIGH_WATER) /* nothing is read: each ping would add its pong */

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
    ws_queue_drop(w);
    loop_share_charge(&w->req->http->sending, CLOSING_NS);
    MHD_upgrade_action(w->handle, MHD_UPGRADE_ACTION_CLOSE);
    w->handle = NULL;
    http_soon(w->req->http);
}

void ws_over(struct ws *w) {
    end(w);
}

void ws_cut(struct ws *w) {
    end(w);
    ws_queue_drop(w);
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
    ws_queue_drop(w);
    wslay_event_context_free(w->frames);
    buf_done(&w->early);
    free(w);
}

/* ---- for libwslay ---- */

size_t ws_backlog(const struct ws *w) {
    return w->queue_bytes + ws_queue_cost(w) + wslay_event_get_queued_msg_length(w->frames) +
           FRAME_COST * wslay_event_get_queued_msg_count(w->frames);
}

static bool may_read(const struct ws *w) {
    return !w->held && ws_backlog(w) < FULL;
}

static ssize_t not_now(struct ws *w, int why) {
    wslay_event_set_error(w->frames, why);
    return -1;
}

/* Bytes that libwslay may have now. It works on all the frames that it is given, and each may be
 * answered: so no more than can hold the frames that are left for this turn. */
static size_t may_take(const struct ws *w, size_t len) {
    uint64_t most = w->inside + (uint64_t)w->frames_left * FRAME_MIN;
    size_t n = len < w->budget ? len : w->budget;
    return may_read(w) ? (n < most ? n : (size_t)most) : 0;
}

static size_t early_left(const struct ws *w) {
    return w->early.len - w->early_at;
}

static ssize_t on_recv(wslay_event_context_ptr ctx, uint8_t *to, size_t len, int flags, void *arg) {
    struct ws *w = arg;
    size_t early = early_left(w), most = may_take(w, len);
    (void)ctx, (void)flags;
    if (most == 0)
        return not_now(w, WSLAY_ERR_WOULDBLOCK);
    if (early) {
        size_t n = most < early ? most : early;
        memcpy(to, w->early.data + w->early_at, n);
        w->early_at += n;
        return (ssize_t)n;
    }
    ssize_t n = recv(w->watch.fd, to, most, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return not_now(w, WSLAY_ERR_WOULDBLOCK);
    if (n <= 0) {
        w->gone = true;
        return not_now(w, WSLAY_ERR_CALLBACK_FAILURE);
    }
    w->budget -= (size_t)n;
    w->req->bytes_in += (size_t)n;
    w->heard_ns = now_ns();
    return n;
}

void ws_took(struct ws *w, size_t n) {
    w->req->bytes_out += n;
    w->heard_ns = now_ns(); /* it takes what we send: it is there */
    w->taken += n;
    if (w->taken >= HTTP_SLICE) { /* not for every byte */
        w->taken = 0;
        http_took(w->req);
    }
}

/* Of a frame that is none libwslay says so with a close frame that has no code; it gets one. */
static ssize_t send_malformed(struct ws *w) {
    static const uint8_t text[] = {0x88, 2, WSLAY_CODE_PROTOCOL_ERROR >> 8,
                                   WSLAY_CODE_PROTOCOL_ERROR & 0xff};
    ssize_t n = send(w->watch.fd, text, sizeof text, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return not_now(w, WSLAY_ERR_WOULDBLOCK);
    return n == sizeof text ? 2 : not_now(w, WSLAY_ERR_CALLBACK_FAILURE);
}

static ssize_t on_send(wslay_event_context_ptr ctx, const uint8_t *data, size_t len, int flags,
                       void *arg) {
    struct ws *w = arg;
    bool is_last = !(flags & WSLAY_MSG_MORE) && wslay_event_get_queued_msg_count(ctx) <= 1;
    int more = is_last ? 0 : MSG_MORE;                            /* one packet for many pongs */
    if (w->malformed && len == 2 && memcmp(data, "\x88", 2) == 0) /* no text of ours holds a NUL */
        return send_malformed(w);
    ssize_t n = send(w->watch.fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT | more);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return not_now(w, WSLAY_ERR_WOULDBLOCK);
    if (n < 0)
        return not_now(w, WSLAY_ERR_CALLBACK_FAILURE);
    ws_took(w, (size_t)n);
    return n;
}

/* What is coming counts as a body does, from when its length is known. False: there is no room.
 * What is longer than a message may be is refused by libwslay. */
static bool make_room(struct ws *w, uint64_t len) {
    uint64_t most = w->o.message_max ? w->o.message_max : WS_MESSAGE_MAX;
    if (len > most || w->coming + len > most)
        return true;
    w->coming += (size_t)len;
    return http_reserve(w->req, w->coming);
}

/* SECURITY: a message in pieces of one byte would take a hundred times its size. */
static void on_frame(wslay_event_context_ptr ctx,
                     const struct wslay_event_on_frame_recv_start_arg *f, void *arg) {
    struct ws *w = arg;
    w->frames_left -= w->frames_left > 0;
    w->inside = f->payload_length;
    if (wslay_is_ctrl_frame(f->opcode))
        return;
    w->pieces = f->opcode == WSLAY_CONTINUATION_FRAME ? w->pieces + 1 : 1;
    bool has_room = make_room(w, f->payload_length);
    if (has_room && w->pieces <= PIECES_MAX)
        return;
    wslay_event_queue_close(ctx, has_room ? WS_TOO_BIG : WS_TRY_LATER, NULL, 0);
    wslay_event_shutdown_read(ctx);
}

static void on_chunk(wslay_event_context_ptr ctx,
                     const struct wslay_event_on_frame_recv_chunk_arg *c, void *arg) {
    struct ws *w = arg;
    (void)ctx;
    w->inside -= c->data_length < w->inside ? c->data_length : w->inside;
}

static void on_message(wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *m,
                       void *arg) {
    struct ws *w = arg;
    (void)ctx;
    if (wslay_is_ctrl_frame(m->opcode))
        return;
    if (!w->closing && !w->over && m->opcode == WSLAY_TEXT_FRAME)
        w->o.on_text(w->o.arg, m->msg ? (const char *)m->msg : "", m->msg_length);
    else if (!w->closing && !w->over)
        w->o.on_binary(w->o.arg, m->msg ? (const void *)m->msg : "", m->msg_length);
    w->coming = 0;
    http_release(w->req);
}

/* ---- turns ---- */

/* Of a peer with whom we are through. False at its end. */
static bool throw_away(struct ws *w) {
    char scratch[16384];
    for (int i = 0; i < 8; i++) {
        ssize_t n = recv(w->watch.fd, scratch, sizeof scratch, MSG_DONTWAIT);
        if (n <= 0)
            return n < 0 && (errno == EAGAIN || errno == EINTR);
    }
    return true;
}

static bool take_message(struct ws *w) {
    w->budget = READ_MAX;
    w->frames_left = FRAMES_MAX;
    if (wslay_event_want_read(w->frames)) {
        if (wslay_event_recv(w->frames) != 0)
            w->malformed = true;
        return !w->gone;
    }
    return !wslay_event_get_close_sent(w->frames) || throw_away(w);
}

static bool wants_write(const struct ws *w) {
    return w->queue || wslay_event_want_write(w->frames);
}

/* First what has begun, then control, then the rest; nothing after a close frame. */
static bool give(struct ws *w) {
    if (ws_queue_is_inside(w) && !ws_queue_send(w, false))
        return false;
    if (ws_queue_is_inside(w))
        return true;
    if (wslay_event_send(w->frames) != 0)
        return false;
    if (wslay_event_get_close_sent(w->frames))
        ws_queue_drop(w); /* it is between two messages: all of them */
    if (!wslay_event_want_write(w->frames) && !ws_queue_send(w, true))
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
    if (sent && !wslay_event_want_read(w->frames)) /* it broke the rules: no more is understood */
        shutdown(w->watch.fd, SHUT_WR);
    return true;
}

static uint32_t interest(const struct ws *w) {
    bool reads = may_read(w) || wslay_event_get_close_sent(w->frames);
    bool writes = wants_write(w) && !w->sends.waits_for; /* then its turn comes anyway */
    return EPOLLRDHUP | (reads ? EPOLLIN : 0) | (writes ? EPOLLOUT : 0);
}

static void watch_again(struct ws *w) {
    struct err e;
    if (loop_rewatch(loop_of(w), &w->watch, interest(w), &e) < 0)
        end(w);
}

/* SECURITY: only what its turn to read has come for reads: what is read is answered, and whatever
 * is sent leads here. */
static void turn(struct ws *w, bool reads) {
    if (w->gives_up)
        ws_queue_drop(w);
    if (!give(w) || (reads && (!take_message(w) || !give(w))) || !part(w)) {
        end(w);
        return;
    }
    http_weigh(w->req);
    watch_again(w);
    if (w->over)
        return;
    if (w->high && ws_backlog(w) < HTTP_LOW_WATER) {
        w->high = false;
        if (w->o.on_drain && !w->closing)
            w->o.on_drain(w->o.arg);
    }
    if (early_left(w) && may_read(w) && wslay_event_want_read(w->frames)) /* no event tells of it */
        loop_share_wait(&w->req->http->reading, &w->reads);
}

static void ws_on_turn_to_read(struct loop_sharer *who) {
    turn(who->arg, true);
}

static void ws_on_turn_to_send(struct loop_sharer *who) {
    struct ws *w = who->arg;
    if (w->over)
        give_back(w);
    else
        turn(w, false);
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

/* A peer that sends no more and of whom nothing is read has left. */
static void ws_on_ready(struct watch *watch, uint32_t events) {
    struct ws *w = watch->arg;
    if (events & (EPOLLHUP | EPOLLERR) || (events & EPOLLRDHUP && !(interest(w) & EPOLLIN)))
        end(w);
    else if (events & EPOLLOUT)
        send_now(w);
    if (!w->over && events & (EPOLLIN | EPOLLRDHUP))
        loop_share_wait(&w->req->http->reading, &w->reads);
}

static void on_timer(struct timer *t) {
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
    static const struct wslay_event_callbacks callbacks = {.recv_callback = on_recv,
                                                           .send_callback = on_send,
                                                           .on_frame_recv_start_callback = on_frame,
                                                           .on_frame_recv_chunk_callback = on_chunk,
                                                           .on_msg_recv_callback = on_message};
    struct ws *w = xcalloc(1, sizeof *w);
    *w = (struct ws){.req = r, .o = *o, .early = BUF_INIT, .queue_end = &w->queue};
    w->watch = (struct watch){.fd = -1, .fn = ws_on_ready, .arg = w};
    w->timer = (struct timer){.fn = on_timer, .arg = w};
    w->reads = (struct loop_sharer){.fn = ws_on_turn_to_read, .arg = w};
    w->sends = (struct loop_sharer){.fn = ws_on_turn_to_send, .arg = w};
    if (wslay_event_context_server_init(&w->frames, &callbacks, w) != 0)
        abort(); /* as base/buf.h: memory that cannot be had */
    wslay_event_config_set_max_recv_msg_length(w->frames,
                                               o->message_max ? o->message_max : WS_MESSAGE_MAX);
    return w;
}

/* ---- for owners ---- */

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
    w->held = false; /* to hear the peer's answer; its messages are dropped */
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
