/* The frames of a WebSocket: what libwslay reads from its socket and writes to it. ws.c says when:
 * a turn of the loop reads a bounded number of bytes and frames, since libwslay works on all that
 * it is given and each frame may want an answer. */

#include "http/ws_frames.h"

#include "base/clock.h"
#include "http/http_body.h"
#include "http/http_held.h"
#include "http/ws_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define READ_MAX   (128u << 10) /* bytes in one turn of the loop */
#define FRAMES_MAX 32u          /* in one turn of the loop */
#define FRAME_MIN  6u           /* bytes of the shortest frame of a client */
#define PIECES_MAX 4096u        /* of a message: each costs libwslay a few allocations */
#define FULL                                                                                       \
    (2 * HTTP_HIGH_WATER) /* backlog at which reading stops: each ping would add a pong            \
                           */

bool ws_frames_may_read(const struct ws *w) {
    return !w->held && ws_backlog(w) < FULL;
}

static ssize_t not_now(struct ws *w, int why) {
    wslay_event_set_error(w->frames, why);
    return -1;
}

/* Bytes that libwslay may have now: no more than hold the frames that are left for this turn, since
 * libwslay works on every frame that it has, and may answer each. */
static size_t may_take(const struct ws *w, size_t len) {
    uint64_t most = w->inside + (uint64_t)w->frames_left * FRAME_MIN;
    size_t n = len < w->budget ? len : w->budget;
    return ws_frames_may_read(w) ? (n < most ? n : (size_t)most) : 0;
}

size_t ws_frames_early(const struct ws *w) {
    return w->early.len - w->early_at;
}

static ssize_t frames_on_recv(wslay_event_context_ptr ctx, uint8_t *to, size_t len, int flags,
                              void *arg) {
    struct ws *w = arg;
    size_t early = ws_frames_early(w), most = may_take(w, len);
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

void ws_frames_took(struct ws *w, size_t n) {
    w->req->bytes_out += n;
    w->heard_ns = now_ns(); /* whoever takes what we send is there */
    w->taken += n;
    if (w->taken >= HTTP_SLICE) { /* not for every byte */
        w->taken = 0;
        http_took(w->req);
    }
}

/* libwslay answers a malformed frame with a close frame without a code; this one has the code. */
static ssize_t send_malformed(struct ws *w) {
    static const uint8_t text[] = {0x88, 2, WSLAY_CODE_PROTOCOL_ERROR >> 8,
                                   WSLAY_CODE_PROTOCOL_ERROR & 0xff};
    ssize_t n = send(w->watch.fd, text, sizeof text, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return not_now(w, WSLAY_ERR_WOULDBLOCK);
    return n == sizeof text ? 2 : not_now(w, WSLAY_ERR_CALLBACK_FAILURE);
}

static ssize_t frames_on_send(wslay_event_context_ptr ctx, const uint8_t *data, size_t len,
                              int flags, void *arg) {
    struct ws *w = arg;
    bool is_last = !(flags & WSLAY_MSG_MORE) && wslay_event_get_queued_msg_count(ctx) <= 1;
    int more = is_last ? 0 : MSG_MORE;                            /* many pongs go in one packet */
    if (w->malformed && len == 2 && memcmp(data, "\x88", 2) == 0) /* no text of ours holds a NUL */
        return send_malformed(w);
    ssize_t n = send(w->watch.fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT | more);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return not_now(w, WSLAY_ERR_WOULDBLOCK);
    if (n < 0)
        return not_now(w, WSLAY_ERR_CALLBACK_FAILURE);
    ws_frames_took(w, (size_t)n);
    return n;
}

static size_t message_max(const struct ws *w) {
    return w->o.message_max ? w->o.message_max : WS_MESSAGE_MAX;
}

/* A message that is coming counts as a body does, as soon as its length is known. False: there is
 * no room. libwslay itself refuses a message that is longer than the maximum. */
static bool make_room(struct ws *w, uint64_t len) {
    uint64_t most = message_max(w);
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

static void frames_on_message(wslay_event_context_ptr ctx,
                              const struct wslay_event_on_msg_recv_arg *m, void *arg) {
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

/* Drops what comes after our close frame. False when the peer has closed its end. */
static bool throw_away(struct ws *w) {
    char scratch[16384];
    for (int i = 0; i < 8; i++) {
        ssize_t n = recv(w->watch.fd, scratch, sizeof scratch, MSG_DONTWAIT);
        if (n <= 0)
            return n < 0 && (errno == EAGAIN || errno == EINTR);
    }
    return true;
}

bool ws_frames_take(struct ws *w) {
    w->budget = READ_MAX;
    w->frames_left = FRAMES_MAX;
    if (wslay_event_want_read(w->frames)) {
        if (wslay_event_recv(w->frames) != 0)
            w->malformed = true;
        return !w->gone;
    }
    return !wslay_event_get_close_sent(w->frames) || throw_away(w);
}

void ws_frames_init(struct ws *w) {
    static const struct wslay_event_callbacks callbacks = {.recv_callback = frames_on_recv,
                                                           .send_callback = frames_on_send,
                                                           .on_frame_recv_start_callback = on_frame,
                                                           .on_frame_recv_chunk_callback = on_chunk,
                                                           .on_msg_recv_callback =
                                                               frames_on_message};
    if (wslay_event_context_server_init(&w->frames, &callbacks, w) != 0)
        abort(); /* out of memory, as in base/buf.h */
    wslay_event_config_set_max_recv_msg_length(w->frames, message_max(w));
}
