/* Connections that are over for us while their client still sends: its body was refused before it
 * was read. Closing such a socket makes the system answer the rest with a reset, and a client that
 * is told so while it sends often throws our reply away unread. So our direction is closed, and
 * what still comes is thrown away for a while: so many bytes at most, and not too slowly. */

#include "http/http_linger.h"

#include "base/fd.h"
#include "http/http_accept.h"
#include "http/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define LINGER_MAX (256u << 20) /* bytes */
#define STEP_MS    5000         /* in each such step at least HTTP_SLOWEST bytes must come */
#define AT_ONCE    (64u << 10)  /* bytes in one turn of the loop */

struct lingerer {
    struct http *http;
    int fd; /* owned */
    struct watch watch;
    struct timer timer;
    struct http_waiter waiter;
    uint64_t left, step_bytes;
    struct deferred free_later;
};

static void free_linger(struct deferred *d) {
    free(d->arg);
}

static void linger_end(struct lingerer *l) {
    struct loop *loop = l->http->o.loop;
    loop_unwatch(loop, &l->watch);
    loop_timer_stop(loop, &l->timer);
    fd_close(&l->fd);
    http_unwait(l->http, &l->waiter);
    l->http->nconns--;
    loop_defer(loop, &l->free_later);
}

static void linger_evict(struct http_waiter *w) {
    linger_end(w->arg);
}

static void linger_on_data(struct watch *w, uint32_t events) {
    struct lingerer *l = w->arg;
    char dropped[AT_ONCE];
    (void)events;
    ssize_t n = recv(l->fd, dropped, sizeof dropped, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || (uint64_t)n >= l->left) {
        linger_end(l);
        return;
    }
    l->left -= (uint64_t)n;
    l->step_bytes += (uint64_t)n;
}

static void linger_on_timer(struct timer *t) {
    struct lingerer *l = t->arg;
    if (l->step_bytes < HTTP_SLOWEST) {
        linger_end(l);
        return;
    }
    l->step_bytes = 0;
    loop_timer_in_ms(l->http->o.loop, t, STEP_MS);
}

bool http_linger(struct http *h, int fd) {
    struct err e;
    AUTO_FD own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0 || shutdown(own, SHUT_WR) < 0)
        return false;
    struct lingerer *l = xcalloc(1, sizeof *l);
    *l = (struct lingerer){.http = h, .left = LINGER_MAX};
    l->watch = (struct watch){.fd = -1, .fn = linger_on_data, .arg = l};
    l->timer = (struct timer){.fn = linger_on_timer, .arg = l};
    l->free_later = (struct deferred){.fn = free_linger, .arg = l};
    l->waiter = (struct http_waiter){.evict = linger_evict, .arg = l};
    if (loop_watch(h->o.loop, &l->watch, own, EPOLLIN, &e) < 0) {
        free(l);
        return false;
    }
    l->fd = fd_take(&own);
    http_wait(h, &l->waiter);
    loop_timer_in_ms(h->o.loop, &l->timer, STEP_MS);
    return true;
}
