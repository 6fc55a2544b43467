/* See ports.h. The socket belongs to the sandbox's network namespace: whoever has it, its bytes go
 * to the sandbox and nowhere else. Init only begins to connect; whether somebody accepts is for the
 * server to wait for.
 *
 * SECURITY: what waits in such a socket is in no control group, for init made it. So its buffers
 * are small and stay as they are (net/bounds.h), and the server bounds their number. Init's
 * connect() is judged by nobody, and need not be: it leads to the loopback. */

#include "init/ports.h"

#include "base/fd.h"
#include "init/diag_list.h"
#include "net/bounds.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#define STATE_LISTEN 10

static int begin(int fd, const struct i_connect *m) {
    const struct sockaddr_in v4 = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)m->port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                                    .sin6_port = htons((uint16_t)m->port),
                                    .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int r = m->ipv6 ? connect(fd, (const struct sockaddr *)&v6, sizeof v6)
                    : connect(fd, (const struct sockaddr *)&v4, sizeof v4);
    return r < 0 && errno == EINPROGRESS ? 0 : r;
}

int ports_connect(const struct i_connect *m, int *ret_fd, struct err *e) {
    const int size = NET_INWARD_BYTES, on = 1;
    AUTO_FD fd =
        socket(m->ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || m->port == 0)
        return err_sys(e, "socket");
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 || begin(fd, m) < 0)
        return err_sys(e, "connect to port %u", m->port);
    *ret_fd = fd_take(&fd);
    return 0;
}

/* ---- which there are ---- */

struct ports_found {
    uint32_t uid;
    uint8_t bits[65536 / 8];
};

static bool is_reached(const struct inet_diag_msg *m) {
    const uint32_t *a = m->id.idiag_src;
    uint32_t last = ntohl(a[3]);
    if (m->idiag_family == AF_INET)
        return a[0] == 0 || ntohl(a[0]) == INADDR_LOOPBACK;
    return (a[0] | a[1] | a[2]) == 0 && last <= 1; /* :: or ::1 */
}

static void add_listener(void *arg, const struct nlmsghdr *h) {
    struct ports_found *f = arg;
    const struct inet_diag_msg *m = NLMSG_DATA(h);
    uint16_t port = ntohs(m->id.idiag_sport);
    if (m->idiag_state == STATE_LISTEN && m->idiag_uid == f->uid && is_reached(m))
        f->bits[port / 8] |= (uint8_t)(1u << port % 8);
}

unsigned ports_list(uint32_t uid, uint16_t ports[PORTS_MAX], bool *ret_cut) {
    static struct ports_found f;
    unsigned n = 0;
    memset(&f, 0, sizeof f);
    f.uid = uid;
    diag_list_inet(IPPROTO_TCP, add_listener, &f);
    *ret_cut = false;
    for (unsigned port = 1; port < 65536; port++) {
        if (!(f.bits[port / 8] & 1u << port % 8))
            continue;
        *ret_cut = n == PORTS_MAX;
        if (*ret_cut)
            break;
        ports[n++] = (uint16_t)port;
    }
    return n;
}
