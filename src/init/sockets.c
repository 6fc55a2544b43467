/* See sockets.h. Theory of operation. What a socket's owner leaves unread is kept in its receive
 * buffer. Datagrams there are charged to the control group; what the kernel itself puts there is
 * charged to nobody: netlink's answers, which repeat the question (seen: 1.9 GiB by a process with
 * memory_mb=32), and the time stamps of what was sent, with a copy of it, for which a message can
 * ask in its control data, where no filter looks (seen: 1.2 GiB). So
 *   - there are at most SOCKETS_MAX in the network namespace, and a few more while many threads ask
 *     at once. Those from accept() are asked for here as well: their other end can be cut off and
 *     used again;
 *   - NETLINK_MAX of them are netlink's. Its closed sockets stay in the namespace for a while, so
 *     they are counted otherwise: an epoll descriptor forgets a file that nobody has open any more;
 *   - their buffers stay as large as they are made: the filter answers SO_RCVBUF as if it had been
 *     done, and the namespace keeps TCP from enlarging them (nursery/netpool.c);
 *   - a netlink socket is made by init, with buffers that are just large enough for libc. Others
 * are made by the caller itself, since the maker's control group is charged for what they hold. A
 * socket remembers who made it. That gives the sandbox nothing: where the kernel looks at its
 * maker's capabilities it looks at the user's too. */

#include "init/sockets.h"

#include "base/fd.h"
#include "init/epolls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif
#define SOCKETS_MAX   256
#define NETLINK_MAX   32
#define NETLINK_BYTES (16 << 10) /* the kernel doubles it, for its own overhead */

unsigned sockets_count(void) {
    char text[1024];
    unsigned used;
    struct err e;
    bool good = file_read_at(AT_FDCWD, "/proc/self/net/sockstat", text, sizeof text, &e) == 0 &&
                sscanf(text, "sockets: used %u", &used) == 1;
    return good ? used : UINT32_MAX;
}

unsigned sockets_netlink(const struct sockets *s) {
    return s->made ? epolls_watched(s->netlink) : 0;
}

static int set_option(int fd, int option, int value) {
    return setsockopt(fd, SOL_SOCKET, option, &value, sizeof value);
}

static int make_netlink(struct sockets *s, const struct caller *c, int *ret_fd) {
    struct epoll_event none = {.events = 0};
    if (!s->made && (s->netlink = epoll_create1(EPOLL_CLOEXEC)) < 0)
        return errno;
    s->made = true;
    if (epolls_watched(s->netlink) >= NETLINK_MAX)
        return ENFILE;
    AUTO_FD fd = socket(AF_NETLINK, (int)c->args[1] | SOCK_CLOEXEC, (int)c->args[2]);
    if (fd < 0 || set_option(fd, SO_RCVBUF, NETLINK_BYTES) < 0 ||
        set_option(fd, SO_SNDBUF, NETLINK_BYTES) < 0 ||
        epoll_ctl(s->netlink, EPOLL_CTL_ADD, fd, &none) < 0)
        return errno;
    *ret_fd = fd_take(&fd);
    return 0;
}

void sockets_make(struct sockets *s, const struct caller *c, unsigned ours) {
    AUTO_FD fd = -1;
    if ((int)c->args[0] == AF_NETLINK) {
        int r = make_netlink(s, c, &fd);
        if (r)
            caller_answer(c, r);
        else
            caller_give(c, fd, c->args[1] & SOCK_CLOEXEC);
    } else if (sockets_count() >= SOCKETS_MAX + ours) {
        caller_answer(c, ENFILE);
    } else {
        caller_go_on(c);
    }
}

static uint64_t cookie_of(int fd) {
    uint64_t cookie = 0;
    socklen_t len = sizeof cookie;
    return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len) < 0 ? 0 : cookie;
}

bool sockets_inside(struct sockets *s, int fd) {
    if (!s->cookie) {
        AUTO_FD own = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        s->cookie = cookie_of(own);
    }
    return cookie_of(fd) == s->cookie;
}

/* What a neighbour's listener accepts, which came through a directory that both have, would be in
 * the neighbour's namespace and in nobody's count. UNIX sockets are charged to who makes them. */
static bool is_a_neighbours(struct sockets *s, struct caller *c) {
    AUTO_FD fd = caller_descriptor(c);
    int domain = AF_UNIX;
    socklen_t len = sizeof domain;
    return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
           domain != AF_UNIX && !sockets_inside(s, fd);
}

void sockets_accept(struct sockets *s, struct caller *c, unsigned ours) {
    if (is_a_neighbours(s, c))
        caller_answer(c, EINVAL);
    else if (sockets_count() >= SOCKETS_MAX + ours)
        caller_answer(c, ENFILE);
    else
        caller_go_on(c);
}

/* A socket of the caller's, one of its numbers, and the value that the caller wants to set. */
struct wish {
    int fd; /* owned */
    int is; /* what SO_DOMAIN or SO_TYPE says of it */
    int value;
};

/* Answers the caller when it returns false. */
static bool read_wish(struct caller *c, int asks, struct wish *ret) {
    socklen_t len = sizeof ret->is;
    int wrong = 0;
    ret->fd = caller_descriptor(c);
    if (ret->fd < 0 || getsockopt(ret->fd, SOL_SOCKET, asks, &ret->is, &len) < 0)
        wrong = errno;
    else if ((uint32_t)c->args[4] < sizeof ret->value)
        wrong = EINVAL;
    else if (!caller_read(c, c->args[3], &ret->value, sizeof ret->value))
        wrong = EFAULT;
    if (wrong)
        caller_answer(c, wrong);
    return wrong == 0;
}

/* What is sent is charged, but for netlink's questions. */
void sockets_buffer(struct caller *c) {
    struct wish w;
    if (read_wish(c, SO_DOMAIN, &w))
        caller_answer(c,
                      w.is != AF_NETLINK && set_option(w.fd, SO_SNDBUF, w.value) < 0 ? errno : 0);
    fd_close(&w.fd);
}

/* Datagram sockets of one port would all get what is sent to a broadcast or multicast address: for
 * them it is answered as if done. */
void sockets_reuse(struct caller *c) {
    struct wish w;
    if (read_wish(c, SO_TYPE, &w))
        caller_answer(
            c, w.is != SOCK_DGRAM && set_option(w.fd, (int)c->args[2], w.value) < 0 ? errno : 0);
    fd_close(&w.fd);
}
