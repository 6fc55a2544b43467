/* How connections come in, and which of them go when there are too many.
 *
 * The library takes a connection in its own turn, and then tells its descriptor only: what came in
 * by a door waits in a list of newcomers until then. SECURITY: a door leads to one sandbox, so a
 * connection must have its own door's name or be closed, whatever became of the door meanwhile.
 *
 * SECURITY: whoever reaches the port can open connections, without a key and almost for nothing. So
 * a connection has its place for good only while a request is under way of which the handlers know
 * who asks (http_settle). All others wait in a list: those that never sent a byte, that sent half a
 * head, that are between two requests, whose request was refused or is open to everybody, or that
 * only linger. When every place is taken, the one that has waited longest goes for the newcomer. A
 * request that does not settle leaves its connection where it stands in the list. */

#include "http/http_accept.h"

#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "http/http_check.h"
#include "http/internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPT_BATCH 64
#define UNSENT       (128 << 10) /* bytes */

struct listener {
    struct listener *next;
    struct http *http;
    struct acceptor acceptor;
    int fd;     /* owned */
    char *door; /* owned: its name, or NULL */
    struct deferred free_later;
};

struct newcomer {
    struct newcomer *next;
    int fd; /* the library's */
    char *door;
};

void http_wait(struct http *h, struct http_waiter *w) {
    if (w->listed)
        return;
    w->older = h->newest;
    w->newer = NULL;
    *(h->newest ? &h->newest->newer : &h->oldest) = w;
    h->newest = w;
    w->listed = true;
}

void http_unwait(struct http *h, struct http_waiter *w) {
    if (!w->listed)
        return;
    *(w->older ? &w->older->newer : &h->oldest) = w->newer;
    *(w->newer ? &w->newer->older : &h->newest) = w->older;
    w->listed = false;
}

void http_settle(struct http_req *r, struct http_account *a) {
    r->account = a;
    http_unwait(r->http, &r->conn->waiter);
}

unsigned http_connections(const struct http *h) {
    return h->nconns - h->leaving;
}

unsigned http_most_connections(const struct http *h) {
    return h->o.max_connections;
}

uint64_t http_evicted(const struct http *h) {
    return h->evicted;
}

/* Whether there is a place for one more. Evicted ones keep their descriptors until the end of this
 * turn. */
static bool make_place(struct http *h) {
    if (h->nconns - h->leaving < h->o.max_connections)
        return true;
    struct http_waiter *w = h->oldest;
    if (!w || h->leaving >= HTTP_LEAVING)
        return false;
    http_unwait(h, w);
    h->evicted++;
    w->evict(w);
    return true;
}

/* A connection too many: the library never sees it. */
static void turn_away(int fd) {
    static const struct http_error full = {
        .code = "too_many_connections",
        .message = "as many connections are open as the server takes",
        .remediation = "try again later, or use fewer connections",
        .detail = "Service Unavailable",
        .retryable = true,
    };
    AUTO_BUF body = BUF_INIT, reply = BUF_INIT;
    http_error_write(&full, &body);
    buf_addf(&reply,
             "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
             body.len, body.data);
    (void)!send(fd, reply.data, reply.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
}

/* ---- by which door ---- */

char *http_door_of(struct http *h, int fd) {
    for (struct newcomer **at = &h->newcomers; *at; at = &(*at)->next) {
        if ((*at)->fd != fd)
            continue;
        struct newcomer *n = LIST_POP(at, next);
        char *door = n->door;
        free(n);
        return door;
    }
    return NULL;
}

/* One that the library closed before it said a word of it may have left its number. */
static void remember_door(struct listener *l, int fd) {
    free(http_door_of(l->http, fd));
    if (!l->door)
        return;
    struct newcomer *n = xcalloc(1, sizeof *n);
    *n = (struct newcomer){.fd = fd, .door = xstrdup(l->door)};
    LIST_PUSH(&l->http->newcomers, n, next);
}

/* ---- coming in ---- */

/* SECURITY: for a client that does not read, the kernel would take 4 MiB from us, which no control
 * group and no bound of ours counts. What is on its way to the client is not in question: that may
 * be as much as the connection needs. Of a unix socket the kernel takes little. */
static void bound_unsent(int fd) {
    const int bytes = UNSENT;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

static void on_visitors(struct acceptor *a) {
    struct listener *l = a->arg;
    struct http *h = l->http;
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        struct sockaddr_storage from;
        socklen_t len = 0;
        int fd = acceptor_next(a, &from, &len);
        if (fd < 0)
            break;
        if (!make_place(h)) {
            turn_away(fd);
            continue;
        }
        if (len < sizeof(struct sockaddr)) /* a unix client has no name */
            len = sizeof(struct sockaddr);
        remember_door(l, fd);
        bound_unsent(fd);
        if (MHD_add_connection(h->daemon, fd, (struct sockaddr *)&from, len) != MHD_YES)
            log_warn("connection refused errno=%d", errno);
    }
    http_soon(h);
}

/* ---- where ---- */

static void free_listener(struct deferred *d) {
    struct listener *l = d->arg;
    free(l->door);
    free(l);
}

int http_listen(struct http *h, int *fd, const char *door, struct err *e) {
    struct listener *l = xcalloc(1, sizeof *l);
    *l = (struct listener){.http = h,
                           .acceptor = {.fn = on_visitors, .arg = l},
                           .free_later = {.fn = free_listener, .arg = l}};
    if (acceptor_start(&l->acceptor, h->o.loop, *fd, e) < 0) {
        free(l);
        return -1;
    }
    l->fd = fd_take(fd);
    l->door = door ? xstrdup(door) : NULL;
    LIST_PUSH(&h->listeners, l, next);
    return 0;
}

static void stop_listening(struct listener **at) {
    struct listener *l = LIST_POP(at, next);
    acceptor_stop(&l->acceptor);
    fd_close(&l->fd);
    loop_defer(l->http->o.loop, &l->free_later);
}

void http_close_door(struct http *h, const char *door) {
    struct listener **at = &h->listeners;
    while (*at && (!(*at)->door || strcmp((*at)->door, door) != 0))
        at = &(*at)->next;
    if (*at)
        stop_listening(at);
}

void http_accept_no_more(struct http *h) {
    while (h->listeners)
        stop_listening(&h->listeners);
}
