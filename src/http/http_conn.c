/* Connections: how they begin, sleep, and end.
 *
 * While a handler has not replied, the connection is suspended and the library does not look at it;
 * and when the end of what a client sends comes together with its last bytes, the library, which
 * waits for edges, overlooks that end. So each connection has a watch of ours for the end.
 *
 * A client that sends no more may have left, or have closed its own direction only and wait for the
 * answer: over TCP both look the same. A request that is not whole then never will be, and is cut.
 * For one that is whole, something is said to the client that every client skips (an interim reply,
 * or a stream's sign of life): the system of a client that has left answers that with a reset. */

#include "http/http_conn.h"

#include "base/log.h"
#include "http/http_accept.h"
#include "http/http_held.h"
#include "http/http_linger.h"
#include "http/http_read.h"
#include "http/http_turn.h"
#include "http/internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROBE_MS  10000
#define UNREAD_MS 10

struct http_conn *http_conn_of(struct MHD_Connection *mhd) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info->socket_context;
}

/* ---- sleeping and waking ---- */

void http_sleep(struct http_req *r) {
    if (r->suspended)
        return;
    r->suspended = true;
    MHD_suspend_connection(r->conn->mhd);
    if (r->conn->half) /* it was already when this request's turn came */
        http_conn_probe(r->conn);
}

void http_wake(struct http_req *r) {
    if (!r->suspended)
        return;
    r->suspended = false;
    MHD_resume_connection(r->conn->mhd);
    http_soon(r->http);
}

/* Nobody is there any more, or nothing can be said: the library sees a closed socket. */
void http_cut(struct http_req *r) {
    if (r->phase == REQ_CUT)
        return;
    r->phase = REQ_CUT;
    r->ended = true;
    if (r->on_gone)
        r->on_gone(r);
    r->on_gone = NULL;
    http_let_go(r);
    loop_unwatch(r->http->o.loop, &r->conn->watch);
    loop_timer_stop(r->http->o.loop, &r->conn->probe);
    shutdown(r->conn->fd, SHUT_RDWR);
    http_wake(r);
}

/* ---- clients that send on ---- */

/* A client whose head and body go out in two writes waits with the second, as Nagle's algorithm
 * has it, until we acknowledge the first; and our system delays that by 40 ms in case there is a
 * reply to send it with. There is none before the body is whole. Where more is there to be read, it
 * does not wait. */
static void on_ack(struct deferred *d) {
    struct http_conn *c = d->arg;
    const int on = 1;
    if (c->req && c->req->phase == REQ_BODY && !c->req->body_done && !c->is_unix && c->drained)
        setsockopt(c->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

void http_conn_ack(struct http_conn *c) {
    loop_defer(c->http->o.loop, &c->ack);
}

void http_conn_drained(struct http_conn *c, bool all) {
    int saved = errno;
    if (all && !c->drained)
        http_conn_ack(c);
    c->drained = all;
    errno = saved;
}

/* ---- clients that send no more ---- */

/* A connection that the library itself ends, because of what a callback said, it forgets at times
 * (0.9.75): it waits for an event of the socket, which it does not watch any more. One that it
 * resumes it looks at in any case. */
static void on_look(struct deferred *d) {
    struct http_conn *c = d->arg;
    if (c->closed)
        return;
    http_put_off(c);
    http_turn_now(c);
}

void http_conn_look(struct http_conn *c) {
    loop_defer(c->http->o.loop, &c->look);
}

static void end(struct http_conn *c) {
    loop_unwatch(c->http->o.loop, &c->watch);
    loop_timer_stop(c->http->o.loop, &c->probe);
    if (c->req)
        http_cut(c->req);
    else
        shutdown(c->fd, SHUT_RDWR);
    http_turn_now(c);
}

/* To a client that may have left: nothing that a reply could be confused with. */
static void say_something(struct http_req *r) {
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (r->queued && r->sign) {
        http_write(r, r->sign, strlen(r->sign));
    } else if (r->queued && r->for_client) {
        http_cut(r);
    } else if (!r->queued && r->is_1_0) {
        http_cut(r); /* it knows no interim replies */
    } else if (!r->queued) {
        ssize_t n = send(r->conn->fd, interim, sizeof interim - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0 && (size_t)n < sizeof interim - 1)
            http_cut(r);
    }
}

static void on_probe(struct timer *t) {
    struct http_conn *c = t->arg;
    struct http_req *r = c->req;
    int unread = 0;
    if (r && r->suspended) {
        loop_timer_in_ms(c->http->o.loop, t, PROBE_MS);
        say_something(r);
    } else if (c->put_off || (ioctl(c->fd, FIONREAD, &unread) == 0 && unread > 0)) {
        loop_timer_in_ms(c->http->o.loop, t, UNREAD_MS); /* the library has yet to see it */
    } else if (!r || (r->phase == REQ_BODY && !r->body_done)) {
        end(c);
    }
}

void http_conn_probe(struct http_conn *c) {
    loop_timer_in_ms(c->http->o.loop, &c->probe, 0);
}

static void on_end(struct watch *w, uint32_t events) {
    struct http_conn *c = w->arg;
    struct err e;
    if (events & (EPOLLHUP | EPOLLERR) || loop_rewatch(c->http->o.loop, w, 0, &e) < 0) {
        end(c);
        return;
    }
    c->half = true;
    http_conn_probe(c);
}

/* ---- their beginning and end ---- */

static void on_late(struct timer *t) {
    struct http_conn *c = t->arg;
    struct http_req *r = c->req;
    if (r && r->step_bytes >= HTTP_SLOWEST) {
        r->step_bytes = 0;
        loop_timer_in_ms(c->http->o.loop, t, c->http->o.body_step_s * SECOND_MS);
        return;
    }
    end(c);
}

static void free_conn(struct deferred *d) {
    struct http_conn *c = d->arg;
    free(c->door);
    free(c);
}

/* The library notices in its next turn, and says so. */
static void evict_conn(struct http_waiter *w) {
    struct http_conn *c = w->arg;
    c->leaves = true;
    c->http->leaving++;
    end(c);
}

static void closed(struct http_conn *c) {
    struct http *h = c->http;
    http_unwait(h, &c->waiter);
    h->leaving -= c->leaves;
    loop_timer_stop(h->o.loop, &c->timer);
    loop_timer_stop(h->o.loop, &c->probe);
    loop_unwatch(h->o.loop, &c->watch);
    if (c->pending)
        http_req_free(c->pending);
    http_read_remove(c);
    http_turn_leave(c);
    c->req = NULL;
    c->closed = true;
    loop_defer(h->o.loop, &c->free_later);
    if (c->leaves || !c->lingers || !http_linger(h, c->fd))
        h->nconns--;
}

void http_conn_notify(void *arg, struct MHD_Connection *mhd, void **context,
                      enum MHD_ConnectionNotificationCode code) {
    struct http *h = arg;
    struct err e;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        closed(*context);
        *context = NULL;
        return;
    }
    struct http_conn *c = xcalloc(1, sizeof *c);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *from =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    *c = (struct http_conn){.http = h, .mhd = mhd, .fd = info->connect_fd};
    c->door = http_door_of(h, c->fd);
    c->is_unix = from && from->client_addr && from->client_addr->sa_family == AF_UNIX;
    c->timer = (struct timer){.fn = on_late, .arg = c};
    c->probe = (struct timer){.fn = on_probe, .arg = c};
    c->ack = (struct deferred){.fn = on_ack, .arg = c};
    c->look = (struct deferred){.fn = on_look, .arg = c};
    c->free_later = (struct deferred){.fn = free_conn, .arg = c};
    c->watch = (struct watch){.fd = -1, .fn = on_end, .arg = c};
    c->waiter = (struct http_waiter){.evict = evict_conn, .arg = c};
    loop_timer_in_ms(h->o.loop, &c->timer, h->o.header_s * SECOND_MS);
    if (loop_watch(h->o.loop, &c->watch, c->fd, EPOLLRDHUP, &e) < 0)
        log_warn("connection not watched why=%s", log_text(e.text));
    *context = c;
    http_read_add(c);
    http_wait(h, &c->waiter);
    h->nconns++;
}
