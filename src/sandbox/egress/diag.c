/* See diag.h. A diagnosis socket (NETLINK_SOCK_DIAG) answers within the call. */

#include "sandbox/egress/diag.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define STATE_SYN_SENT 2

struct question {
    struct nlmsghdr h;
    struct inet_diag_req_v2 q;
};

int diag_open(int *ret_fd, struct err *e) {
    *ret_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    return *ret_fd < 0 ? err_sys(e, "open the diagnosis of sockets") : 0;
}

static void put_address(__be32 to[4], const struct net_addr *a) {
    if (net_addr_is_v4(a))
        net_addr_v4(a, (uint8_t *)to);
    else
        memcpy(to, a->b, sizeof a->b);
}

void diag_drain(int diag) {
    char reply[8192];
    while (recv(diag, reply, sizeof reply, MSG_DONTWAIT) > 0)
        ;
}

bool diag_is_opening(int diag, const struct syn *s) {
    _Alignas(struct nlmsghdr) char reply[4096];
    struct question m = {.h = {.nlmsg_len = sizeof m,
                               .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                               .nlmsg_flags = NLM_F_REQUEST},
                         .q = {.sdiag_family = net_addr_is_v4(&s->to.at) ? AF_INET : AF_INET6,
                               .sdiag_protocol = IPPROTO_TCP,
                               .idiag_states = UINT32_MAX}};
    m.q.id.idiag_cookie[0] = m.q.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    m.q.id.idiag_sport = htons(s->from.port);
    m.q.id.idiag_dport = htons(s->to.port);
    put_address(m.q.id.idiag_src, &s->from.at);
    put_address(m.q.id.idiag_dst, &s->to.at);
    diag_drain(diag);
    if (send(diag, &m, sizeof m, 0) < 0)
        return true;
    ssize_t n = recv(diag, reply, sizeof reply, MSG_DONTWAIT);
    const struct nlmsghdr *h = (const void *)reply;
    if (n < (ssize_t)sizeof *h)
        return true;
    if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY || n < NLMSG_LENGTH((int)sizeof(struct inet_diag_msg)))
        return false;
    return ((const struct inet_diag_msg *)NLMSG_DATA(h))->idiag_state == STATE_SYN_SENT;
}
