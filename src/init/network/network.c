/* See network.h. Theory of operation.
 *
 * A sandbox's network namespace has nothing but its loopback. From the first I_NETWORK on it routes
 * every address of IPv4 there, and of IPv6 those that were allowed (sandbox/egress/anyip.h), and
 * each connect() to one of them is asked for at the gate, on the channel that came with the message
 * (ask.c). What is allowed goes on: its SYN stays unanswered until the gate has connected outside,
 * and then this process answers it, from the very address that was asked for, and hands both
 * sockets to the usher (link.c). What is sent to port 53 arrives at sockets that are made here and
 * that the usher serves.
 *
 * All of these descriptors are in one epoll descriptor, which the loop of init.c polls like one
 * more client, so that a sandbox without a network pays nothing. Nothing here waits: the gate and
 * the usher are asked and answer later.
 *
 * The gate may die and come back with another channel: what it was asked for is asked again, what
 * is open is said to the new one (A_STANDS). */

#include "init/network/network.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "init/diag_list.h"
#include "init/internal.h"
#include "init/network/open.h"
#include "net/judge.h"
#include "sandbox/egress/anyip.h"
#include "sandbox/egress/diag.h"
#include "sandbox/egress/hold.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

#define TICK_MS       250
#define EVENTS        32 /* of one turn */
#define ANSWERS       64 /* likewise, of the gate */
#define CHANNEL_BYTES (1 << 20)
#define NAMES_PORT    53
#define NAMES_BACKLOG 8
/* Over all descriptors of all processes, for who asked for a name that was refused. */
#define SEARCHES_PER_SECOND 10
#define SEARCHES_BURST      20

void network_init(struct network *n) {
    n->events = n->gate = n->diag = n->usher.channel = -1;
    n->raw[0] = n->raw[1] = -1;
    memset(n->names, 0xff, sizeof n->names);
}

int network_fd(const struct network *n) {
    return n->on ? n->events : -1;
}

int network_watch(struct network *n, int fd, uint32_t events, enum network_event kind,
                  unsigned index) {
    struct epoll_event e = {.events = events, .data.u64 = (uint64_t)kind << 32 | index};
    return epoll_ctl(n->events, EPOLL_CTL_ADD, fd, &e);
}

/* ---- once ---- */

static int make_names_socket(int family, int type, int *ret_fd, struct err *e) {
    const struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(NAMES_PORT)};
    const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(NAMES_PORT)};
    int one = 1;
    AUTO_FD fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(e, "socket for names");
    bool stream = type == SOCK_STREAM, is_v4 = family == AF_INET;
    if (stream)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    /* Whichever server a program asks, the answer comes from there. */
    else if (is_v4)
        setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof one);
    else
        setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, sizeof one);
    if (!is_v4)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(fd, is_v4 ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6,
             is_v4 ? sizeof v4 : sizeof v6) < 0 ||
        (stream && listen(fd, NAMES_BACKLOG) < 0))
        return err_sys(e, "bind port %d", NAMES_PORT);
    *ret_fd = fd_take(&fd);
    return 0;
}

static int make_sockets(struct network *n, bool v6, struct err *e) {
    socklen_t len = sizeof n->cookie;
    for (int i = 0; i < (v6 ? 2 : 1); i++) {
        int family = i ? AF_INET6 : AF_INET;
        if (syn_open(family, &n->raw[i], e) < 0 ||
            make_names_socket(family, SOCK_DGRAM, &n->names[NAMES_UDP4 + i], e) < 0 ||
            make_names_socket(family, SOCK_STREAM, &n->names[NAMES_TCP4 + i], e) < 0)
            return -1;
        if (network_watch(n, n->raw[i], EPOLLIN, EVENT_RAW, (unsigned)i) < 0)
            return err_sys(e, "watch a raw socket");
    }
    if (getsockopt(n->raw[0], SOL_SOCKET, SO_NETNS_COOKIE, &n->cookie, &len) < 0)
        return err_sys(e, "SO_NETNS_COOKIE");
    return diag_open(&n->diag, e);
}

/* The namespace is never used again: what a policy left in it belongs to nobody else. */
static int turn_on(struct init *b, struct err *e) {
    struct network *n = &b->network;
    bool v6;
    *b->plan.used = 1;
    n->connections = NET_CONNECTIONS;
    n->rate = (struct net_bucket)NET_BUCKET(NET_NEW_PER_SECOND, NET_NEW_BURST);
    n->asked.rate = (struct net_bucket)NET_BUCKET(NET_ASKED_PER_SECOND, NET_ASKED_BURST);
    n->asked.searches = (struct net_bucket)NET_BUCKET(SEARCHES_PER_SECOND, SEARCHES_BURST);
    if ((n->events = epoll_create1(EPOLL_CLOEXEC)) < 0)
        return err_sys(e, "epoll_create");
    n->usher.page = mmap(NULL, sizeof *n->usher.page, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (n->usher.page == MAP_FAILED)
        return err_sys(e, "mmap");
    hold_alarm();
    if (anyip_add(&v6, e) < 0 || make_sockets(n, v6, e) < 0)
        return -1;
    n->on = true;
    return 0;
}

/* What was made of it before a failure. */
static void turn_off(struct network *n) {
    fd_close(&n->events);
    fd_close(&n->diag);
    fd_close_all(n->raw, 2);
    fd_close_all(n->names, NAMES_SOCKETS);
    if (n->usher.page && n->usher.page != MAP_FAILED)
        munmap(n->usher.page, sizeof *n->usher.page);
    n->usher.page = NULL;
}

/* ---- the gate ---- */

bool network_tell_gate(struct network *n, const struct wire_out *o) {
    struct err e;
    return n->gate >= 0 && wire_send(n->gate, o, &e) == WIRE_SENT;
}

static void lose_gate(struct init *b) {
    struct network *n = &b->network;
    if (n->gate < 0)
        return;
    fd_close(&n->gate);
    n->away_ms = now_ms();
    links_gate_lost(b);
    names_gate_lost(b);
}

static void gate_limits(struct init *b, const struct a_limits *m) {
    struct network *n = &b->network;
    struct wire_out o;
    n->connections = m->connections < NET_CONNECTIONS ? m->connections : NET_CONNECTIONS;
    n->bytes = m->bytes;
    u_limits_put(&o, &(struct u_limits){.bytes = m->bytes});
    usher_order(&n->usher, &o);
}

/* False: no gate of ours. */
static bool gate_answer(struct init *b, struct wire_in *in) {
    union {
        struct a_limits limits;
        struct a_verdict verdict;
        struct a_result result;
        struct a_named named;
        struct a_helloed helloed;
        struct a_close close;
    } m;
    struct err e;
    if (a_limits_get(in, &m.limits, &e) == 0)
        gate_limits(b, &m.limits);
    else if (a_verdict_get(in, &m.verdict, &e) == 0)
        link_on_verdict(b, in, &m.verdict);
    else if (a_result_get(in, &m.result, &e) == 0)
        link_on_result(b, in, &m.result);
    else if (a_named_get(in, &m.named, &e) == 0)
        names_on_named(b, &m.named);
    else if (a_helloed_get(in, &m.helloed, &e) == 0)
        link_on_helloed(b, &m.helloed);
    else if (a_close_get(in, &m.close, &e) == 0)
        link_on_close(b, &m.close);
    else
        return false;
    return true;
}

static void serve_gate(struct init *b) {
    struct network *n = &b->network;
    for (unsigned i = 0; i < ANSWERS && n->gate >= 0; i++) {
        struct err e;
        AUTO_WIRE_IN in;
        in.nfds = in.fd_at = 0;
        enum wire_got got = wire_recv(n->gate, &in, &e);
        if (got == WIRE_NONE)
            return;
        if (got != WIRE_GOT || !gate_answer(b, &in))
            lose_gate(b);
    }
}

int network_attach(struct init *b, int *gate, struct err *e) {
    struct network *n = &b->network;
    int size = CHANNEL_BYTES;
    if (!n->on && *gate >= 0 && turn_on(b, e) < 0) {
        turn_off(n);
        return -1;
    }
    if (!n->on)
        return 0;
    lose_gate(b);
    if (*gate < 0)
        return 0;
    setsockopt(*gate, SOL_SOCKET, SO_SNDBUF, &size, sizeof size); /* best effort */
    if (fd_set_nonblock(*gate, e) < 0)
        return -1;
    n->gate = fd_take(gate);
    if (network_watch(n, n->gate, EPOLLIN, EVENT_GATE, 0) < 0)
        return err_sys(e, "watch the gate");
    links_gate_came(b);
    return 0;
}

/* ---- refusals ---- */

bool network_is_news(struct network *n, const char *op) {
    uint64_t hash = hash_text(op), at_s = now_ms() / 1000 + 1;
    unsigned oldest = 0;
    for (unsigned i = 0; i < TOLD_TARGETS; i++) {
        if (n->told[i].hash == hash && n->told[i].at_s == at_s)
            return ++n->told[i].n <= TOLD_TIMES;
        if (n->told[i].at_s < n->told[oldest].at_s)
            oldest = i;
    }
    if (n->told[oldest].at_s == at_s)
        return false;
    n->told[oldest].hash = hash;
    n->told[oldest].at_s = at_s;
    n->told[oldest].n = 1;
    return true;
}

void network_tell_news(struct init *b, uint32_t process, const char *op, const char *detail,
                       const char *rule) {
    struct wire_out o;
    struct err e;
    i_denied_put(&o, &(struct i_denied){process, op, detail, rule});
    wire_send(b->req, &o, &e); /* a full socket loses the note, not the answer */
}

void network_tell_refusal(struct init *b, uint32_t process, const char *op, const char *detail,
                          const char *rule) {
    if (*op && network_is_news(&b->network, op))
        network_tell_news(b, process, op, detail, rule);
}

/* ---- the loop's part ---- */

/* While there is no usher its sockets are watched here: the first question starts one. */
static void watch_names(struct network *n) {
    bool want = n->usher.state == USHER_NONE && now_ms() >= n->usher.retry_ms;
    if (want == n->names_watched)
        return;
    for (unsigned i = 0; i < NAMES_SOCKETS; i++) {
        if (n->names[i] < 0)
            continue;
        if (want)
            network_watch(n, n->names[i], EPOLLIN, EVENT_NAMES, i);
        else
            epoll_ctl(n->events, EPOLL_CTL_DEL, n->names[i], NULL);
    }
    n->names_watched = want;
}

static void serve_event(struct init *b, enum network_event kind, unsigned index) {
    struct network *n = &b->network;
    switch (kind) {
    case EVENT_GATE:
        serve_gate(b);
        return;
    case EVENT_USHER:
        usher_serve(b);
        return;
    case EVENT_RAW:
        link_on_syns(b, n->raw[index & 1]);
        return;
    case EVENT_NAMES:
        usher_start(b);
        return;
    case EVENT_LINK:
        link_on_open(b, index);
        return;
    }
}

void network_serve(struct init *b) {
    struct network *n = &b->network;
    struct epoll_event e[EVENTS];
    if (!n->on)
        return;
    int got = epoll_wait(n->events, e, EVENTS, 0);
    for (int i = 0; i < got; i++)
        serve_event(b, (enum network_event)(e[i].data.u64 >> 32), (unsigned)e[i].data.u64);
    uint64_t now = now_ms();
    if (now >= n->tick_ms) {
        links_look_after(b);
        n->tick_ms = now + TICK_MS;
    }
    watch_names(n);
}

int network_patience(const struct network *n) {
    uint64_t now = now_ms(), until = UINT64_MAX;
    if (!n->on)
        return -1;
    if (links_wait(n))
        until = n->tick_ms;
    if (n->usher.state == USHER_NONE && !n->names_watched && n->usher.retry_ms < until)
        until = n->usher.retry_ms;
    return until == UINT64_MAX ? -1 : until <= now ? 0 : (int)(until - now);
}

void network_reaped(struct init *b, pid_t pid, int status) {
    usher_reaped(b, pid, status);
}

unsigned network_unlisted(const struct network *n) {
    unsigned own = n->on ? 2 + (n->raw[1] >= 0) : 0; /* the raw ones, and the diagnosis */
    return own + diag_list_sockets();
}

unsigned network_sockets(const struct network *n) {
    unsigned own = network_unlisted(n);
    if (!n->on)
        return own;
    for (unsigned i = 0; i < NAMES_SOCKETS; i++)
        own += n->names[i] >= 0;
    if (n->usher.state != USHER_NONE) {
        uint32_t namers = n->usher.page->namers;
        own += 2 + (namers < NET_NAMERS ? namers : NET_NAMERS); /* 2: ends of the channel to it */
    }
    return own + links_sockets(n);
}
