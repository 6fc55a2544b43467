/* Messages that wait for a WebSocket's peer. libwslay would keep a copy for every peer, however
 * slowly it reads; here messages are blobs, which all peers share. libwslay keeps the control
 * frames, which may stand between two messages and never inside one. */

#include "http/ws_queue.h"

#include "base/clock.h"
#include "http/ws_frames.h"
#include "http/ws_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define COST     128u         /* memory of a message beside its bytes, about */
#define TURN_MAX (256u << 10) /* bytes that are sent in one turn */
#define SOME     64u          /* messages that are dropped between two looks at the clock */

struct ws_message {
    struct ws_message *next;
    struct blob *of; /* owned: a reference */
    uint8_t head[10];
    size_t head_len, at; /* `at` counts from the head's first byte */
};

static size_t size_of(const struct ws_message *m) {
    return m->head_len + m->of->bytes.len;
}

/* RFC 6455, 5.2: one frame, not masked. */
static void put_head(struct ws_message *m, uint8_t opcode) {
    uint64_t len = m->of->bytes.len;
    unsigned more = len < 126 ? 0 : len < 65536 ? 2 : 8;
    m->head[0] = (uint8_t)(0x80 | opcode);
    m->head[1] = (uint8_t)(more == 0 ? len : more == 2 ? 126 : 127);
    for (unsigned i = 0; i < more; i++)
        m->head[2 + i] = (uint8_t)(len >> 8 * (more - 1 - i));
    m->head_len = 2 + more;
}

void ws_queue_add(struct ws *w, uint8_t opcode, struct blob *of) {
    struct ws_message *m = xcalloc(1, sizeof *m);
    m->of = blob_ref(of);
    blob_meter(of, &w->req->http->replies, true);
    put_head(m, opcode);
    *w->queue_end = m;
    w->queue_end = &m->next;
    w->queue_bytes += size_of(m);
    w->queue_n++;
}

static void drop_message(struct ws *w, struct ws_message **at) {
    struct ws_message *m = *at;
    *at = m->next;
    if (w->queue_end == &m->next)
        w->queue_end = at;
    w->queue_bytes -= size_of(m) - m->at;
    w->queue_n--;
    blob_meter(m->of, &w->req->http->replies, false);
    blob_unref(m->of);
    free(m);
}

void ws_queue_give_up(struct ws *w) {
    if (w->gives_up || !w->queue)
        return;
    w->gives_up = true;
    w->req->http->giving_up++;
}

bool ws_queue_drop(struct ws *w) {
    struct ws_message **from = &w->queue;
    if (!w->over && *from && (*from)->at > 0) /* half a message cannot be taken back */
        from = &(*from)->next;
    for (unsigned n = 1; *from; n++) {
        drop_message(w, from);
        if (n % SOME == 0 && *from && loop_share_is_spent(&w->req->http->sending))
            return false;
    }
    if (w->gives_up)
        w->req->http->giving_up--;
    w->gives_up = false;
    return true;
}

size_t ws_queue_cost(const struct ws *w) {
    return COST * w->queue_n;
}

bool ws_queue_is_inside(const struct ws *w) {
    return w->queue && w->queue->at > 0;
}

/* -1 when the peer is gone, 0 when it takes no more for now. */
static ssize_t send_some(struct ws *w, struct ws_message *m) {
    size_t body = m->at > m->head_len ? m->at - m->head_len : 0;
    size_t head = m->at - body; /* bytes of the head that are sent */
    struct iovec parts[2] = {
        {m->head + head, m->head_len - head},
        {m->of->bytes.data + body, m->of->bytes.len - body},
    };
    if (parts[1].iov_len > TURN_MAX)
        parts[1].iov_len = TURN_MAX;
    const struct msghdr h = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t n = sendmsg(w->watch.fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    m->at += (size_t)n;
    w->queue_bytes -= (size_t)n;
    ws_frames_took(w, (size_t)n);
    return n;
}

bool ws_queue_send(struct ws *w, bool all, struct loop_share *s) {
    for (size_t sent = 0; w->queue && sent < TURN_MAX;) {
        ssize_t n = send_some(w, w->queue);
        if (n <= 0)
            return n == 0;
        sent += (size_t)n;
        if (w->queue->at < size_of(w->queue))
            continue;
        drop_message(w, &w->queue);
        if (!all || loop_share_is_spent(s)) /* small ones take long, too */
            break;
    }
    return true;
}
