/* See tunnel.h. Bytes go both ways, and nobody looks at them. Of each way at most one piece waits,
 * and no more is read before that is given: who does not read slows down who sends.
 *
 * Like a WebSocket (ws.c) a tunnel begins when the library has sent the reply and hands over the
 * client's socket, has its turns among those that read, and gives the socket back at its end, in
 * its own time; the library then says that the request is over. */

#include "http/tunnel.h"

#include "base/fd.h"
#include "base/list.h"
#include "http/http_reply.h"
#include "http/internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define PIECE (64u << 10)

enum { CLIENT, BEHIND, SIDES };

/* What one side has sent. */
struct tunnel_way {
    struct buf rest; /* that the other did not take, from `at` on */
    size_t at;
    bool ended, told; /* it sends no more; the other one knows */
};

struct tunnel {
    struct http_req *req;                     /* borrowed: its owner */
    struct tunnel *next;                      /* of those that are open */
    struct MHD_UpgradeResponseHandle *handle; /* NULL before and after the client's is ours */
    int fds[SIDES]; /* that behind us is owned, the client's is the library's */
    struct watch watches[SIDES];
    struct tunnel_way ways[SIDES];
    struct loop_sharer turn;
    struct timer timer;
    uint64_t idle_ms;
    bool over;
};

static struct loop *tunnel_loop(const struct tunnel *t) {
    return t->req->http->o.loop;
}

/* ---- the end ---- */

static void tunnel_leave(struct tunnel *t) {
    (void)LIST_REMOVE(&t->req->http->tunnels, t, next);
    loop_share_wait(&t->req->http->reading, &t->turn);
}

/* At the end of the batch: it may be freed as soon as the library has the socket back. */
static void tunnel_end(struct tunnel *t) {
    if (t->over)
        return;
    t->over = true;
    for (int i = 0; i < SIDES; i++)
        loop_unwatch(tunnel_loop(t), &t->watches[i]);
    loop_timer_stop(tunnel_loop(t), &t->timer);
    fd_close(&t->fds[BEHIND]);
    if (t->handle)
        tunnel_leave(t);
}

void tunnel_over(struct tunnel *t) {
    tunnel_end(t);
    t->handle = NULL;
}

void tunnel_free(struct tunnel *t) {
    if (!t)
        return;
    loop_share_leave(&t->turn);
    for (int i = 0; i < SIDES; i++)
        buf_done(&t->ways[i].rest);
    fd_close(&t->fds[BEHIND]);
    free(t);
}

void tunnel_drain(struct http *h) {
    while (h->tunnels)
        tunnel_end(h->tunnels);
}

/* ---- bytes ---- */

static size_t waits(const struct tunnel_way *w) {
    return w->rest.len - w->at;
}

static bool tunnel_give(struct tunnel *t, int from, const char *data, size_t len, size_t *ret) {
    ssize_t n = send(t->fds[!from], data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    *ret = n > 0 ? (size_t)n : 0;
    *(from == CLIENT ? &t->req->bytes_in : &t->req->bytes_out) += *ret;
    return n >= 0 || errno == EAGAIN || errno == EINTR;
}

static bool tunnel_give_rest(struct tunnel *t, int from) {
    struct tunnel_way *w = &t->ways[from];
    size_t n;
    if (!waits(w))
        return true;
    if (!tunnel_give(t, from, w->rest.data + w->at, waits(w), &n))
        return false;
    w->at += n;
    if (!waits(w)) {
        buf_done(&w->rest);
        w->rest = (struct buf)BUF_INIT;
        w->at = 0;
    }
    return true;
}

/* One piece of a way; false: the tunnel is broken. */
static bool pump(struct tunnel *t, int from) {
    static char piece[PIECE];
    struct tunnel_way *w = &t->ways[from];
    size_t given;
    if (!tunnel_give_rest(t, from))
        return false;
    if (waits(w))
        return true;
    ssize_t n = w->ended ? -1 : recv(t->fds[from], piece, sizeof piece, MSG_DONTWAIT);
    if (!w->ended && n < 0 && errno != EAGAIN && errno != EINTR)
        return false;
    if (n > 0) {
        if (!tunnel_give(t, from, piece, (size_t)n, &given))
            return false;
        buf_add(&w->rest, piece + given, (size_t)n - given);
        loop_timer_in_ms(tunnel_loop(t), &t->timer, t->idle_ms);
    }
    w->ended = w->ended || n == 0;
    if (w->ended && !w->told)
        shutdown(t->fds[!from], SHUT_WR);
    w->told = w->ended;
    return true;
}

/* A side that we want nothing of is not watched: one that has ended would wake us for ever. */
static bool watch_side(struct tunnel *t, int side) {
    const struct tunnel_way *in = &t->ways[side], *out = &t->ways[!side];
    struct watch *w = &t->watches[side];
    uint32_t events = (in->ended || waits(in) ? 0u : EPOLLIN) | (waits(out) ? EPOLLOUT : 0u);
    struct err e;
    if (w->fd >= 0 && events)
        return loop_rewatch(tunnel_loop(t), w, events, &e) == 0;
    loop_unwatch(tunnel_loop(t), w);
    return !events || loop_watch(tunnel_loop(t), w, t->fds[side], events, &e) == 0;
}

static void tunnel_on_turn(struct loop_sharer *who) {
    struct tunnel *t = who->arg;
    if (t->over) {
        struct MHD_UpgradeResponseHandle *handle = t->handle;
        t->handle = NULL;
        if (handle) {
            MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
            http_soon(t->req->http);
        }
        return;
    }
    if (!pump(t, CLIENT) || !pump(t, BEHIND) || !watch_side(t, CLIENT) || !watch_side(t, BEHIND) ||
        (t->ways[CLIENT].told && t->ways[BEHIND].told))
        tunnel_end(t);
}

static void tunnel_on_ready(struct watch *w, uint32_t events) {
    struct tunnel *t = w->arg;
    (void)events;
    loop_share_wait(&t->req->http->reading, &t->turn);
}

static void tunnel_on_timer(struct timer *timer) {
    tunnel_end(timer->arg);
}

/* ---- the beginning ---- */

static void tunnel_begins(void *arg, struct MHD_Connection *mhd, void *context, const char *extra,
                          size_t len, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle) {
    struct tunnel *t = arg;
    struct http_conn *c = t->req->conn;
    struct http *h = t->req->http;
    (void)mhd, (void)context;
    loop_unwatch(h->o.loop, &c->watch); /* a descriptor has one watch */
    loop_timer_stop(h->o.loop, &c->timer);
    loop_timer_stop(h->o.loop, &c->probe);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    t->fds[CLIENT] = fd;
    t->handle = handle;
    buf_add(&t->ways[CLIENT].rest, extra, len);
    LIST_PUSH(&h->tunnels, t, next);
    loop_timer_in_ms(h->o.loop, &t->timer, t->idle_ms);
    loop_share_wait(&h->reading, &t->turn); /* not now: we are inside the library */
    if (h->draining)
        tunnel_end(t);
}

void http_tunnel(struct http_req *r, int *fd, const struct http_tunnel_options *o) {
    struct tunnel *t = xcalloc(1, sizeof *t);
    *t = (struct tunnel){.req = r, .fds = {-1, fd_take(fd)}, .idle_ms = o->idle_ms};
    for (int i = 0; i < SIDES; i++) {
        t->watches[i] = (struct watch){.fd = -1, .fn = tunnel_on_ready, .arg = t};
        t->ways[i].rest = (struct buf)BUF_INIT;
    }
    t->timer = (struct timer){.fn = tunnel_on_timer, .arg = t};
    t->turn = (struct loop_sharer){.fn = tunnel_on_turn, .arg = t, .owner = o->owner};
    buf_add(&t->ways[BEHIND].rest, o->early, o->len);
    if (http_switch(r, t, tunnel_begins))
        r->tunnel = t;
    else
        tunnel_free(t);
}
