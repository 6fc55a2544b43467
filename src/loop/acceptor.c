/* See acceptor.h. */

#include "loop/acceptor.h"

#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#define AGAIN_MS 100

static void on_watch(struct watch *w, uint32_t events) {
    struct acceptor *a = w->arg;
    (void)events;
    a->fn(a);
}

static void on_again(struct timer *t) {
    struct acceptor *a = t->arg;
    struct err e;
    if (loop_rewatch(a->loop, &a->watch, EPOLLIN, &e) < 0)
        log_warn("not listening why=%s", log_text(e.text));
}

int acceptor_start(struct acceptor *a, struct loop *l, int fd, struct err *e) {
    a->loop = l;
    a->fd = fd;
    a->watch = (struct watch){.fd = -1, .fn = on_watch, .arg = a};
    a->again = (struct timer){.fn = on_again, .arg = a};
    if (fd_set_nonblock(fd, e) < 0)
        return -1;
    return loop_watch(l, &a->watch, fd, EPOLLIN, e);
}

void acceptor_stop(struct acceptor *a) {
    loop_timer_stop(a->loop, &a->again);
    loop_unwatch(a->loop, &a->watch);
}

int acceptor_next(struct acceptor *a, struct sockaddr_storage *from, socklen_t *ret_len) {
    struct err e;
    if (from) {
        memset(from, 0, sizeof *from);
        *ret_len = sizeof *from;
    }
    int fd = accept4(a->fd, (struct sockaddr *)from, ret_len, SOCK_CLOEXEC | SOCK_NONBLOCK);
    bool none_left = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (fd < 0 && none_left && loop_rewatch(a->loop, &a->watch, 0, &e) == 0)
        loop_timer_in_ms(a->loop, &a->again, AGAIN_MS);
    return fd;
}
