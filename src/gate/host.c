/* See host.h. A netlink socket, opened before the filter that allows no other, tells of each
 * address that comes or goes. What comes is added at once. When one goes, or the kernel says that
 * it had to leave something out, all are asked for again, and the old list stands until the new one
 * is complete: for a moment an address may be ours too long, never too short.
 *
 * A network's first address is ours as well: where the host forwards IPv6 it is every router's. */

#include "gate/host.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "loop/loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_MOST 65536
#define TURNS     64    /* messages in a turn of the loop */
#define OWN_MOST  65536 /* addresses; nobody has more */
#define FIRST_MS  5000  /* the answer at the start */

struct list {
    struct net_addr *at; /* owned */
    size_t n, cap;
};

struct host {
    struct loop *loop; /* borrowed */
    int fd;
    struct watch watch;
    struct list now, next; /* next: what an answer that is under way has told so far */
    bool asking;
    bool again; /* something went meanwhile: ask once more */
    bool more;  /* addresses than before */
    void (*fn)(void *arg);
    void *arg;
    char data[READ_MOST];
};

/* Whether it is new. */
static bool list_add(struct list *l, const struct net_addr *a) {
    for (size_t i = 0; i < l->n; i++)
        if (net_addr_same(&l->at[i], a))
            return false;
    if (l->n == OWN_MOST)
        return false;
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 16;
        l->at = xrealloc(l->at, l->cap * sizeof *l->at);
    }
    l->at[l->n++] = *a;
    return true;
}

static int ask(struct host *h, struct err *e) {
    struct {
        struct nlmsghdr head;
        struct ifaddrmsg body;
    } q = {{.nlmsg_len = sizeof q,
            .nlmsg_type = RTM_GETADDR,
            .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
           {.ifa_family = AF_UNSPEC}};
    h->again = false;
    h->next.n = 0;
    if (send(h->fd, &q, sizeof q, 0) != (ssize_t)sizeof q)
        return err_sys(e, "ask for the host's addresses");
    h->asking = true;
    return 0;
}

static void ask_again(struct host *h) {
    struct err e;
    h->again = true;
    if (!h->asking && ask(h, &e) < 0)
        log_error("host's addresses error=%s", log_text(e.text));
}

static struct net_addr first_of(const struct net_addr *a, unsigned bits) {
    struct net_addr r = *a;
    for (unsigned i = bits; i < 128; i++)
        r.b[i / 8] &= (uint8_t) ~(0x80u >> i % 8);
    return r;
}

static bool read_address(const struct nlmsghdr *m, int type, struct net_addr *ret) {
    const struct ifaddrmsg *body = NLMSG_DATA(m);
    size_t want = body->ifa_family == AF_INET ? 4 : body->ifa_family == AF_INET6 ? 16 : 0;
    int left = (int)IFA_PAYLOAD(m);
    for (const struct rtattr *r = IFA_RTA(body); RTA_OK(r, left); r = RTA_NEXT(r, left)) {
        if (r->rta_type != type || RTA_PAYLOAD(r) != want || want == 0)
            continue;
        if (want == 4)
            *ret = net_addr_of_v4(RTA_DATA(r));
        else
            memcpy(ret->b, RTA_DATA(r), sizeof ret->b);
        return true;
    }
    return false;
}

static void add_own(struct host *h, const struct net_addr *a) {
    h->more |= list_add(&h->now, a);
    if (h->asking)
        list_add(&h->next, a);
}

static void take_address(struct host *h, const struct nlmsghdr *m) {
    /* The own end of a link; IFA_ADDRESS is the other end where there are two. Broadcasts are
     * nobody else's either. */
    static const int types[] = {IFA_LOCAL, IFA_ADDRESS, IFA_BROADCAST};
    const struct ifaddrmsg *body = NLMSG_DATA(m);
    struct net_addr a, local;
    bool has_local = read_address(m, IFA_LOCAL, &local);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (!read_address(m, types[i], &a) || (types[i] == IFA_ADDRESS && has_local))
            continue;
        add_own(h, &a);
        if (types[i] != IFA_ADDRESS || body->ifa_family != AF_INET6 || body->ifa_prefixlen > 127)
            continue;
        a = first_of(&a, body->ifa_prefixlen);
        add_own(h, &a);
    }
}

static void answer_is_complete(struct host *h) {
    struct list old = h->now;
    h->asking = false;
    if (h->again) {
        ask_again(h);
        return;
    }
    h->now = h->next;
    h->next = old;
}

static void take_one(struct host *h, const struct nlmsghdr *m) {
    if (m->nlmsg_flags & NLM_F_DUMP_INTR)
        h->again = true;
    if (m->nlmsg_type == RTM_NEWADDR && m->nlmsg_len >= NLMSG_LENGTH(sizeof(struct ifaddrmsg)))
        take_address(h, m);
    else if (m->nlmsg_type == RTM_DELADDR)
        ask_again(h);
    else if (m->nlmsg_type == NLMSG_DONE && h->asking)
        answer_is_complete(h);
    else if (m->nlmsg_type == NLMSG_ERROR)
        h->asking = false; /* the old list stays */
}

static void host_take(struct host *h, const void *data, size_t len) {
    for (const struct nlmsghdr *m = data; NLMSG_OK(m, len); m = NLMSG_NEXT(m, len))
        take_one(h, m);
}

/* One packet; false when there is none. Only the kernel is heard. */
static bool receive(struct host *h) {
    struct sockaddr_nl from = {0};
    socklen_t size = sizeof from;
    ssize_t n =
        recvfrom(h->fd, h->data, sizeof h->data, MSG_DONTWAIT, (struct sockaddr *)&from, &size);
    if (n < 0 && errno == ENOBUFS) { /* something was left out */
        ask_again(h);
        return true;
    }
    if (n < 0)
        return errno == EINTR;
    if (from.nl_pid == 0)
        host_take(h, h->data, (size_t)n);
    return true;
}

static void host_on_event(struct watch *w, uint32_t events) {
    struct host *h = w->arg;
    (void)events;
    for (int i = 0; i < TURNS && receive(h); i++)
        ;
    if (h->more)
        h->fn(h->arg);
    h->more = false;
}

/* At the start nothing else can be done before it is there. */
static int read_first(struct host *h, struct err *e) {
    const struct timeval most = {FIRST_MS / 1000, 0};
    setsockopt(h->fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    if (ask(h, e) < 0)
        return -1;
    while (h->asking) {
        ssize_t n = recv(h->fd, h->data, sizeof h->data, 0);
        if (n < 0)
            return err_sys(e, "the host's addresses");
        host_take(h, h->data, (size_t)n);
    }
    h->more = false;
    return h->now.n ? 0 : err_set(e, EPROTO, "the kernel tells no address of this host");
}

static int host_listen(struct host *h, struct err *e) {
    const struct sockaddr_nl a = {.nl_family = AF_NETLINK,
                                  .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
    h->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (h->fd < 0 || bind(h->fd, (const struct sockaddr *)&a, sizeof a) < 0)
        return err_sys(e, "netlink");
    if (read_first(h, e) < 0)
        return -1;
    return loop_watch(h->loop, &h->watch, h->fd, EPOLLIN, e);
}

int host_new(struct loop *l, void (*fn)(void *arg), void *arg, struct host **ret, struct err *e) {
    struct host *h = xcalloc(1, sizeof *h);
    h->loop = l;
    h->fd = -1;
    h->fn = fn;
    h->arg = arg;
    h->watch = (struct watch){.fd = -1, .fn = host_on_event, .arg = h};
    if (host_listen(h, e) < 0) {
        host_free(h);
        return -1;
    }
    *ret = h;
    return 0;
}

void host_free(struct host *h) {
    if (!h)
        return;
    loop_unwatch(h->loop, &h->watch);
    fd_close(&h->fd);
    free(h->now.at);
    free(h->next.at);
    free(h);
}

struct net_own host_own(const struct host *h) {
    return (struct net_own){h->now.at, h->now.n};
}
