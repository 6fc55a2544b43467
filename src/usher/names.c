/* See names.h. Questions for names: datagrams to port 53 of whichever address a program takes for a
 * name server, and connections to it. SECURITY: hostile bytes, which end here: what goes on to the
 * gate is a name and a type, what comes back are addresses, and the reply is written anew. What is
 * no plain question, or too much, is dropped, as networks do. */

#include "usher/names.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>

#define READ_AT_ONCE 16 /* datagrams of one turn */
#define PATIENCE_MS  10000

static const struct question none;

void names_start(struct usher *u) {
    u->rate = (struct net_bucket)NET_BUCKET(NET_ASKED_PER_SECOND, NET_ASKED_BURST);
    for (unsigned i = 0; i < NET_NAMERS; i++)
        u->namers[i].fd = -1;
    for (unsigned i = 0; i < USHER_NAMES; i++) {
        if (u->names[i] >= 0)
            usher_watch(u, u->names[i], EPOLLIN, EVENT_NAMES, i);
    }
}

/* ---- to the gate ---- */

static uint16_t port_of(const struct sockaddr_storage *a) {
    return ntohs(a->ss_family == AF_INET ? ((const struct sockaddr_in *)a)->sin_port
                                         : ((const struct sockaddr_in6 *)a)->sin6_port);
}

/* NULL: dropped. */
static struct question *names_ask(struct usher *u, const uint8_t *packet, size_t len,
                                  const struct question *from) {
    struct question *q = NULL;
    for (unsigned i = 0; i < NET_QUESTIONS && !q; i++)
        q = u->questions[i].used ? NULL : &u->questions[i];
    if (!q || !net_bucket_take(&u->rate, now_ms()))
        return NULL;
    *q = *from;
    if (!net_dns_read(packet, len, &q->asked))
        return NULL;
    q->used = true;
    q->id = u->serial++ * NET_QUESTIONS + (uint32_t)(q - u->questions);
    q->since_ms = now_ms();
    u->waits++;
    struct wire_out o;
    u_name_put(&o, &(struct u_name){.id = q->id,
                                    .type = q->asked.type,
                                    .port = q->from >= 0 ? port_of(&q->who) : 0,
                                    .family = q->who.ss_family,
                                    .name = q->asked.name});
    usher_tell_init(u, &o);
    return q;
}

static void question_forget(struct usher *u, struct question *q) {
    u->waits -= q->used;
    q->used = false;
}

/* ---- datagrams ---- */

/* The control data that names the server that was asked, as it comes and as it goes back. */
union control {
    struct cmsghdr align;
    char room[128];
};

static void read_server(struct msghdr *m, struct sockaddr_storage *ret) {
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        if (h->cmsg_level == IPPROTO_IP && h->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo info;
            memcpy(&info, CMSG_DATA(h), sizeof info);
            *(struct sockaddr_in *)ret =
                (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = info.ipi_addr};
        } else if (h->cmsg_level == IPPROTO_IPV6 && h->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo info;
            memcpy(&info, CMSG_DATA(h), sizeof info);
            *(struct sockaddr_in6 *)ret =
                (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = info.ipi6_addr};
        }
    }
}

static void put_server(struct msghdr *m, const struct sockaddr_storage *at) {
    struct cmsghdr *h = m->msg_control;
    bool v4 = at->ss_family == AF_INET;
    const struct in_pktinfo info4 = {.ipi_spec_dst = ((const struct sockaddr_in *)at)->sin_addr};
    const struct in6_pktinfo info6 = {.ipi6_addr = ((const struct sockaddr_in6 *)at)->sin6_addr};
    size_t len = v4 ? sizeof info4 : sizeof info6;
    h->cmsg_level = v4 ? IPPROTO_IP : IPPROTO_IPV6;
    h->cmsg_type = v4 ? IP_PKTINFO : IPV6_PKTINFO;
    h->cmsg_len = CMSG_LEN(len);
    memcpy(CMSG_DATA(h), v4 ? (const void *)&info4 : (const void *)&info6, len);
    m->msg_controllen = CMSG_SPACE(len);
}

static bool read_datagram(struct usher *u, unsigned index) {
    uint8_t packet[NET_PACKET_BYTES];
    union control c;
    struct question from = none;
    struct iovec v = {packet, sizeof packet};
    struct msghdr m = {.msg_name = &from.who,
                       .msg_namelen = sizeof from.who,
                       .msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = &c,
                       .msg_controllen = sizeof c};
    ssize_t n = recvmsg(u->names[index], &m, MSG_DONTWAIT);
    if (n < 0)
        return false;
    from.from = (int)index;
    read_server(&m, &from.at);
    if (!(m.msg_flags & MSG_TRUNC) && from.at.ss_family == from.who.ss_family)
        names_ask(u, packet, (size_t)n, &from);
    return true;
}

static void reply_datagram(struct usher *u, struct question *q, uint8_t *packet, size_t len) {
    union control c = {.room = {0}};
    struct iovec v = {packet, len};
    struct msghdr m = {.msg_name = &q->who,
                       .msg_namelen = q->who.ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                                                  : sizeof(struct sockaddr_in6),
                       .msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = &c};
    put_server(&m, &q->at);
    sendmsg(u->names[q->from], &m, MSG_DONTWAIT | MSG_NOSIGNAL); /* lost, as datagrams are */
}

/* ---- connections ---- */

static void namer_close(struct usher *u, struct namer *n) {
    if (n->fd < 0)
        return;
    u->page->namers--;
    u->waits--;
    fd_close(&n->fd);
    for (unsigned i = 0; i < NET_QUESTIONS; i++) {
        struct question *q = &u->questions[i];
        if (q->used && q->from < 0 && &u->namers[q->namer] == n)
            question_forget(u, q);
    }
}

static void take_namer(struct usher *u, unsigned index) {
    unsigned i = 0;
    while (i < NET_NAMERS && u->namers[i].fd >= 0)
        i++;
    AUTO_FD fd = accept4(u->names[index], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 || i == NET_NAMERS || !usher_watch(u, fd, EPOLLIN, EVENT_NAMER, i))
        return;
    u->namers[i] = (struct namer){.fd = fd_take(&fd), .since_ms = now_ms()};
    u->page->namers++;
    u->waits++;
}

void namer_read(struct usher *u, unsigned index) {
    struct namer *n = &u->namers[index];
    if (n->fd < 0)
        return;
    size_t whole = n->have < 2 ? 2 : 2 + (size_t)(n->packet[0] << 8 | n->packet[1]);
    ssize_t got = n->waits ? 0 : recv(n->fd, n->packet + n->have, whole - n->have, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) { /* the end, or more than one question at a time */
        namer_close(u, n);
        return;
    }
    n->have += (size_t)got;
    if (n->have < 2)
        return;
    whole = 2 + (size_t)(n->packet[0] << 8 | n->packet[1]);
    if (whole > sizeof n->packet) {
        namer_close(u, n);
    } else if (n->have == whole && whole > 2) {
        struct question from = none;
        from.from = -1;
        from.namer = index;
        n->waits = true;
        if (!names_ask(u, n->packet + 2, whole - 2, &from))
            namer_close(u, n);
    }
}

static void reply_namer(struct usher *u, struct namer *n, uint8_t *packet, size_t len) {
    uint8_t whole[2 + NET_PACKET_BYTES] = {(uint8_t)(len >> 8), (uint8_t)len};
    memcpy(whole + 2, packet, len);
    ssize_t sent = send(n->fd, whole, len + 2, MSG_DONTWAIT | MSG_NOSIGNAL);
    n->waits = false;
    n->have = 0;
    n->since_ms = now_ms();
    if (sent != (ssize_t)len + 2)
        namer_close(u, n);
}

void names_read(struct usher *u, unsigned index) {
    if (index == USHER_TCP4 || index == USHER_TCP6) {
        take_namer(u, index);
        return;
    }
    for (unsigned i = 0; i < READ_AT_ONCE && read_datagram(u, index); i++)
        ;
}

/* ---- from the gate ---- */

void names_answer(struct usher *u, const struct u_named *m) {
    struct question *q = &u->questions[m->id % NET_QUESTIONS];
    struct net_addr addresses[NET_ADDRESSES];
    uint8_t packet[NET_PACKET_BYTES];
    size_t n = m->addresses.len / sizeof *addresses;
    if (!q->used || q->id != m->id)
        return;
    n = n < NET_ADDRESSES ? n : NET_ADDRESSES;
    if (n)
        memcpy(addresses, m->addresses.data, n * sizeof *addresses);
    size_t len = net_dns_reply(&q->asked, (enum net_rcode)m->rcode, m->ttl, addresses, n, packet,
                               sizeof packet);
    question_forget(u, q);
    if (q->from >= 0)
        reply_datagram(u, q, packet, len);
    else
        reply_namer(u, &u->namers[q->namer], packet, len);
}

void names_look_after(struct usher *u) {
    uint64_t now = now_ms();
    for (unsigned i = 0; i < NET_QUESTIONS; i++) {
        if (u->questions[i].used && now > u->questions[i].since_ms + PATIENCE_MS)
            question_forget(u, &u->questions[i]);
    }
    for (unsigned i = 0; i < NET_NAMERS; i++) {
        if (u->namers[i].fd >= 0 && now > u->namers[i].since_ms + PATIENCE_MS)
            namer_close(u, &u->namers[i]);
    }
}
