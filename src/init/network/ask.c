/* See ask.h, and network.c for what becomes of one that is asked for.
 *
 * SECURITY. A call that goes on (CONTINUE) is made by the kernel, with whatever address and
 * descriptor there are by then: another thread can have changed both since we looked. That is
 * harmless by one invariant, which everything here rests on:
 *
 *     No socket of the host's network namespace is ever in a descriptor table that user code can
 *     reach.
 *
 * So whatever the kernel connects here, it connects in a namespace of a sandbox, in which nothing
 * leads out but the usher, to whom only we give sockets: one inside that is bound to the address
 * that the gate was asked for, with the one outside that the gate connected to just this address.
 * Who changes an address in time gets a connection that nobody answers, or one that was allowed.
 *
 * Where we make the connect ourselves (open.c), it is of the very socket and address that we looked
 * at. */

#include "init/network/ask.h"

#include "base/clock.h"
#include "base/fd.h"
#include "init/internal.h"
#include "net/judge.h"
#include "sandbox/egress/anyip.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

#define ROOM_MS 100 /* between two looks for links that were given up */

struct asked {
    int family; /* as the address says; of the socket it must be the same */
    struct end to;
    struct wish wish; /* owned */
};

static uint64_t option(int fd, int level, int name) {
    uint64_t value = 0; /* int options fill the low half: both architectures are little-endian */
    socklen_t len = sizeof value;
    return getsockopt(fd, level, name, &value, &len) < 0 ? UINT64_MAX : value;
}

/* The address, read once; false: nothing that leads out. */
static bool read_address(const struct network *n, const struct caller *c, struct asked *ret) {
    struct wish *w = &ret->wish;
    int len = (int)c->args[2];
    if (len < (int)sizeof w->address.ss_family || (size_t)len > sizeof w->address ||
        !caller_read(c, c->args[1], &w->address, (size_t)len))
        return false;
    w->len = (socklen_t)len;
    ret->family = w->address.ss_family;
    return (ret->family == AF_INET || ret->family == AF_INET6) &&
           net_addr_from(&w->address, w->len, &ret->to.at, &ret->to.port) &&
           (n->raw[1] >= 0 || net_addr_is_v4(&ret->to.at)) && /* without IPv6 there is no route */
           !anyip_is_inside(&ret->to);
}

/* Whether the kernel would send a SYN for this socket: otherwise it has an answer of its own, and a
 * link that waits for a SYN would be left to somebody else's. */
static bool would_connect(int fd, const struct asked *a, uint64_t cookie) {
    struct tcp_info info = {0};
    socklen_t len = sizeof info;
    if (option(fd, SOL_SOCKET, SO_DOMAIN) != (uint64_t)a->family ||
        option(fd, SOL_SOCKET, SO_PROTOCOL) != IPPROTO_TCP ||
        option(fd, SOL_SOCKET, SO_NETNS_COOKIE) != cookie)
        return false; /* of another sandbox, through a directory that both have: theirs to judge */
    if (a->family == AF_INET6 && net_addr_is_v4(&a->to.at) &&
        option(fd, IPPROTO_IPV6, IPV6_V6ONLY) != 0)
        return false;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 && info.tcpi_state == TCP_CLOSE;
}

static void refuse_for_limit(struct init *b, uint32_t process, const struct caller *c,
                             const struct end *to, int errnum, const char *why) {
    struct network *n = &b->network;
    struct net_verdict v;
    net_verdict_refuse(&v, &to->at, to->port, "", errnum, "network:limit", why);
    n->traffic.all[traffic_account(&n->traffic, v.rule)].refused++;
    network_tell_refusal(b, process, v.op, v.detail, v.rule);
    caller_answer(c, errnum);
}

/* NULL: there is room. */
static const char *no_room(struct init *b) {
    struct network *n = &b->network;
    uint64_t now = now_ms();
    const char *why = links_no_room(n);
    if (!why || now < n->looked_ms + ROOM_MS)
        return why;
    n->looked_ms = now;
    links_look_after(b);
    return links_no_room(n);
}

static void ask_gate(struct init *b, uint32_t process, const struct caller *c, struct asked *a) {
    struct network *n = &b->network;
    const struct end *to = &a->to;
    char why[NET_DETAIL_SIZE];
    const char *full = no_room(b);
    int no_usher = full ? 0 : usher_start(b);
    if (n->bytes && n->usher.page->spent >= n->bytes) {
        refuse_for_limit(b, process, c, to, EACCES, NETWORK_SPENT);
    } else if (full) {
        refuse_for_limit(b, process, c, to, NET_TOO_MANY, full);
    } else if (no_usher) {
        snprintf(why, sizeof why, "the process that copies the bytes could not be started: %s",
                 strerror(no_usher));
        refuse_for_limit(b, process, c, to, NET_TOO_MANY, why);
    } else if (!net_bucket_take(&n->rate, now_ms())) {
        refuse_for_limit(
            b, process, c, to, EACCES,
            "these are too many new connections at once; make fewer, or wait a few seconds");
    } else {
        link_ask(b, process, c, to, &a->wish);
    }
}

void network_connect(struct init *b, uint32_t process, struct caller *c) {
    struct asked a;
    if (!b->network.on || !read_address(&b->network, c, &a)) {
        caller_go_on(c);
        return;
    }
    a.wish.socket = caller_descriptor(c);
    bool asks = a.wish.socket >= 0 && would_connect(a.wish.socket, &a, b->network.cookie);
    if (asks)
        ask_gate(b, process, c, &a);
    fd_close(&a.wish.socket); /* what is not asked for */
    if (!asks)
        caller_go_on(c);
}
