/* See anyip.h. By netlink: addresses of our own on lo, and routes of type local. */

#include "sandbox/egress/anyip.h"

#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#define DNS_PORT 53

struct request {
    struct nlmsghdr h;
    union {
        struct ifaddrmsg address;
        struct rtmsg route;
    };
    char attributes[128];
};

static void add_attribute(struct request *q, unsigned short type, const void *data, size_t len) {
    struct rtattr a = {.rta_type = type, .rta_len = (unsigned short)RTA_LENGTH(len)};
    char *at = (char *)q + NLMSG_ALIGN(q->h.nlmsg_len);
    memcpy(at, &a, sizeof a);
    memcpy(at + RTA_LENGTH(0), data, len);
    q->h.nlmsg_len = (uint32_t)(NLMSG_ALIGN(q->h.nlmsg_len) + RTA_ALIGN(a.rta_len));
}

/* 0 or an errno. */
static int anyip_ask(int netlink, const struct request *q) {
    struct {
        struct nlmsghdr h;
        struct nlmsgerr answer;
        char echo[256];
    } r;
    if (send(netlink, q, q->h.nlmsg_len, 0) < 0)
        return errno;
    ssize_t n = recv(netlink, &r, sizeof r, 0);
    if (n < (ssize_t)(sizeof r.h + sizeof r.answer) || r.h.nlmsg_type != NLMSG_ERROR)
        return EPROTO;
    return r.answer.error == -EEXIST ? 0 : -r.answer.error;
}

static int add_address(int netlink, int lo, int family, const char *text) {
    uint8_t bytes[16];
    size_t len = family == AF_INET ? 4 : 16;
    struct request q = {.h = {.nlmsg_len = NLMSG_LENGTH(sizeof q.address),
                              .nlmsg_type = RTM_NEWADDR,
                              .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL},
                        .address = {.ifa_family = (unsigned char)family,
                                    .ifa_prefixlen = (unsigned char)(len * 8),
                                    .ifa_flags = family == AF_INET ? 0 : IFA_F_NODAD,
                                    .ifa_index = (unsigned)lo}};
    inet_pton(family, text, bytes);
    add_attribute(&q, IFA_LOCAL, bytes, len);
    add_attribute(&q, IFA_ADDRESS, bytes, len);
    return anyip_ask(netlink, &q);
}

/* To that address of IPv6, or to all of IPv4. */
static int change_route(int netlink, int lo, bool add, const struct net_addr *v6) {
    uint8_t source[16];
    struct request q = {.h = {.nlmsg_len = NLMSG_LENGTH(sizeof q.route),
                              .nlmsg_type = add ? RTM_NEWROUTE : RTM_DELROUTE,
                              .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
                        .route = {.rtm_family = v6 ? AF_INET6 : AF_INET,
                                  .rtm_table = RT_TABLE_LOCAL,
                                  .rtm_protocol = RTPROT_STATIC,
                                  .rtm_scope = RT_SCOPE_HOST,
                                  .rtm_type = RTN_LOCAL}};
    if (add)
        q.h.nlmsg_flags |= NLM_F_CREATE | NLM_F_EXCL;
    if (v6) {
        q.route.rtm_dst_len = 128;
        add_attribute(&q, RTA_DST, v6->b, sizeof v6->b);
    }
    inet_pton(q.route.rtm_family, v6 ? ANYIP_OWN6 : ANYIP_OWN4, source);
    add_attribute(&q, RTA_OIF, &lo, sizeof lo);
    add_attribute(&q, RTA_PREFSRC, source, v6 ? 16 : 4);
    return anyip_ask(netlink, &q);
}

static int open_routes(int *ret_netlink, int *ret_lo, struct err *e) {
    AUTO_FD netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    *ret_lo = (int)if_nametoindex("lo");
    if (netlink < 0 || *ret_lo == 0)
        return err_sys(e, "open the routes");
    *ret_netlink = fd_take(&netlink);
    return 0;
}

static int change_v6(bool add, const struct net_addr *a, struct err *e) {
    AUTO_FD netlink = -1;
    int lo, r;
    if (open_routes(&netlink, &lo, e) < 0)
        return -1;
    r = change_route(netlink, lo, add, a);
    return r ? err_set(e, r, "route an address to the loopback: %s", strerror(r)) : 0;
}

int anyip_add_v6(const struct net_addr *a, struct err *e) {
    return change_v6(true, a, e);
}

int anyip_remove_v6(const struct net_addr *a, struct err *e) {
    return change_v6(false, a, e);
}

/* The kernel makes the route to an address of IPv6 later, beside us. */
static int add_own_v6(int netlink, int lo) {
    struct net_addr own;
    int r = add_address(netlink, lo, AF_INET6, ANYIP_OWN6);
    inet_pton(AF_INET6, ANYIP_OWN6, own.b);
    return r ? r : change_route(netlink, lo, true, &own);
}

int anyip_add(bool *ret_v6, struct err *e) {
    AUTO_FD netlink = -1;
    int lo, r;
    if (open_routes(&netlink, &lo, e) < 0)
        return -1;
    if ((r = add_address(netlink, lo, AF_INET, ANYIP_OWN4)) ||
        (r = add_address(netlink, lo, AF_INET, ANYIP_NAMES4)) ||
        (r = change_route(netlink, lo, true, NULL)))
        return err_set(e, r, "route every address to the loopback: %s", strerror(r));
    *ret_v6 = !add_own_v6(netlink, lo);
    return 0;
}

static bool is_one(const struct net_addr *a, const char *text) {
    struct net_addr other;
    return net_addr_parse(text, strlen(text), &other) && net_addr_same(a, &other);
}

bool anyip_is_inside(const struct end *a) {
    static const struct net_addr any6, loopback6 = {.b = {[15] = 1}};
    uint8_t v4[4];
    if (a->port == DNS_PORT)
        return true;
    if (!net_addr_is_v4(&a->at))
        return net_addr_same(&a->at, &any6) || net_addr_same(&a->at, &loopback6) ||
               is_one(&a->at, ANYIP_OWN6);
    net_addr_v4(&a->at, v4);
    return v4[0] == IN_LOOPBACKNET || !(v4[0] | v4[1] | v4[2] | v4[3]) ||
           is_one(&a->at, ANYIP_OWN4) || is_one(&a->at, ANYIP_NAMES4);
}
