/* See outside.h. */

#include "gate/outside.h"

#include "base/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

/* What the caller in the sandbox can be told. */
static int plain_errno(int errnum) {
    switch (errnum) {
    case 0:
    case EINPROGRESS:
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ETIMEDOUT:
        return errnum;
    case ECONNRESET:
        return ECONNREFUSED;
    case EACCES: /* of the host's own packet filter */
    case EPERM:
    case EHOSTDOWN:
    case EPROTO:
        return EHOSTUNREACH;
    case ENETDOWN:
    case EAFNOSUPPORT:
    case EINVAL: /* no such address can be connected to */
        return ENETUNREACH;
    default: /* descriptors, memory, ports */
        return NET_TOO_MANY;
    }
}

/* SECURITY: whoever closes it, or dies with it, resets it: what a host that does not read was sent
 * would stay in the memory of the host's network for minutes, and nobody would pay for it. The
 * usher closes it when all has been acknowledged. */
static void set_up(int fd) {
    const struct linger reset = {.l_onoff = 1};
    const int on = 1, bytes = NET_BUFFER_BYTES, idle = NET_KEEPALIVE_SECONDS;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* the program's own leg may wait */
}

int outside_connect(const struct net_addr *address, uint16_t port, int *ret_fd) {
    struct sockaddr_storage to;
    socklen_t len = net_addr_to(address, port, &to);
    *ret_fd = -1;
    AUTO_FD fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return plain_errno(errno);
    set_up(fd);
    int errnum = connect(fd, (const struct sockaddr *)&to, len) < 0 ? errno : 0;
    if (errnum == 0 || errnum == EINPROGRESS)
        *ret_fd = fd_take(&fd);
    return plain_errno(errnum);
}

bool outside_is_over(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    return poll(&p, 1, 0) > 0;
}

int outside_result(int fd) {
    int errnum = 0;
    socklen_t len = sizeof errnum;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &len) < 0)
        errnum = errno;
    return plain_errno(errnum);
}

static bool is_loopback(const struct net_addr *a) {
    uint8_t v4[4] = {0};
    if (!net_addr_is_v4(a))
        return false;
    net_addr_v4(a, v4);
    return v4[0] == 127;
}

bool outside_is_this_host(int fd, const struct net_addr *address, const struct net_own *own) {
    struct sockaddr_storage ss;
    socklen_t len = sizeof ss;
    struct net_addr local;
    uint16_t port;
    if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0 ||
        !net_addr_from(&ss, len, &local, &port) || !net_addr_same(&local, address))
        return false;
    if (is_loopback(address))
        return false; /* a closed range: a rule names it */
    for (size_t i = 0; i < own->n; i++)
        if (net_addr_same(&own->at[i], address))
            return false; /* a rule names it */
    return true;
}
