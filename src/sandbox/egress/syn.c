/* See syn.h. What comes from a raw socket was sent by hostile code: only lengths and fixed offsets
 * are relied on. */

#include "sandbox/egress/syn.h"

#include "base/fd.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <string.h>

#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND 78
#endif

#define IP4_HEAD   20
#define IP6_HEAD   40
#define TCP_HEAD   20
#define TCP_SEQ    4
#define TCP_OFFSET 12
#define TCP_FLAGS  13
#define SYN        0x02
#define ACK        0x10
#define SYN_BYTES  128 /* of a packet that are looked at */

/* A SYN without ACK. IPv4's packets come with their header. */
static const struct sock_filter only_syn4[] = {
    BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),         BPF_STMT(BPF_LD | BPF_B | BPF_IND, TCP_FLAGS),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SYN | ACK), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYN, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SYN_BYTES),           BPF_STMT(BPF_RET | BPF_K, 0),
};
static const struct sock_filter only_syn6[] = {
    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, TCP_FLAGS),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SYN | ACK),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYN, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SYN_BYTES),
    BPF_STMT(BPF_RET | BPF_K, 0),
};

int syn_open(int family, int *ret_fd, struct err *e) {
    bool v4 = family == AF_INET;
    int one = 1;
    struct sock_fprog program = {.len = (unsigned short)(v4 ? sizeof only_syn4 / sizeof *only_syn4
                                                            : sizeof only_syn6 / sizeof *only_syn6),
                                 .filter =
                                     (struct sock_filter *)(uintptr_t)(v4 ? only_syn4 : only_syn6)};
    AUTO_FD fd = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    if (fd < 0)
        return err_sys(e, "raw socket");
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) < 0)
        return err_sys(e, "attach the filter for SYNs");
    if (!v4 && setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, sizeof one) < 0)
        return err_sys(e, "IPV6_RECVPKTINFO");
    *ret_fd = fd_take(&fd);
    return 0;
}

static void read_ports(const uint8_t *tcp, struct syn *ret) {
    ret->from.port = (uint16_t)(tcp[0] << 8 | tcp[1]);
    ret->to.port = (uint16_t)(tcp[2] << 8 | tcp[3]);
    memcpy(&ret->seq, tcp + TCP_SEQ, 4);
    ret->seq = ntohl(ret->seq);
}

static void read_packet4(const uint8_t *p, size_t len, struct syn *ret) {
    size_t head = len ? (size_t)(p[0] & 15) * 4 : 0;
    if (head < IP4_HEAD || len < head + TCP_HEAD)
        return;
    ret->from.at = net_addr_of_v4(p + 12);
    ret->to.at = net_addr_of_v4(p + 16);
    read_ports(p + head, ret);
}

static void read_packet6(const uint8_t *p, size_t len, struct msghdr *m, struct syn *ret) {
    const struct sockaddr_in6 *from = m->msg_name;
    if (len < TCP_HEAD)
        return;
    memcpy(ret->from.at.b, &from->sin6_addr, sizeof ret->from.at.b);
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        if (h->cmsg_level == IPPROTO_IPV6 && h->cmsg_type == IPV6_PKTINFO)
            memcpy(ret->to.at.b, CMSG_DATA(h), sizeof ret->to.at.b);
    }
    read_ports(p, ret);
}

bool syn_next(int raw, struct syn *ret) {
    uint8_t packet[SYN_BYTES];
    _Alignas(struct cmsghdr) char control[128];
    struct sockaddr_storage name;
    struct iovec v = {packet, sizeof packet};
    struct msghdr m = {.msg_name = &name,
                       .msg_namelen = sizeof name,
                       .msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof control};
    *ret = (struct syn){0};
    ssize_t n = recvmsg(raw, &m, MSG_DONTWAIT);
    if (n < 0)
        return false;
    if (name.ss_family == AF_INET)
        read_packet4(packet, (size_t)n, ret);
    else
        read_packet6(packet, (size_t)n, &m, ret);
    return true;
}

/* --- failures --- */

/* The sum of RFC 1071, not yet turned over. */
static uint32_t add_words(uint32_t sum, const void *data, size_t len) {
    const uint8_t *p = data;
    for (size_t i = 0; i + 1 < len; i += 2)
        sum += (uint32_t)(p[i] << 8 | p[i + 1]);
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

static void put_sum(uint8_t *at, uint32_t sum) {
    uint16_t turned = htons((uint16_t)~sum);
    memcpy(at, &turned, 2);
}

static void put_ports(uint8_t *at, const struct end *from, const struct end *to) {
    uint16_t source = htons(from->port), target = htons(to->port);
    memcpy(at, &source, 2);
    memcpy(at + 2, &target, 2);
}

static void put_v4(uint8_t *at, const struct end *of) {
    net_addr_v4(&of->at, at);
}

/* Sends from s->to to s->from, as if it came from there. */
static int send_back(const struct syn *s, int protocol, const void *data, size_t len,
                     struct err *e) {
    struct sockaddr_storage from, to;
    socklen_t size = net_addr_to(&s->from.at, 0, &to);
    bool v4 = to.ss_family == AF_INET;
    int one = 1, checksum_at = 16;
    net_addr_to(&s->to.at, 0, &from);
    AUTO_FD fd = socket(to.ss_family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
    if (fd < 0 || setsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_FREEBIND : IPV6_FREEBIND,
                             &one, sizeof one) < 0)
        return err_sys(e, "raw socket");
    if (!v4 && protocol == IPPROTO_TCP &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_CHECKSUM, &checksum_at, sizeof checksum_at) < 0)
        return err_sys(e, "IPV6_CHECKSUM");
    if (bind(fd, (const struct sockaddr *)&from, size) < 0 ||
        sendto(fd, data, len, MSG_DONTWAIT, (const struct sockaddr *)&to, size) < 0)
        return err_sys(e, "send a crafted packet");
    return 0;
}

static int send_reset(const struct syn *s, struct err *e) {
    uint8_t h[TCP_HEAD] = {[TCP_OFFSET] = TCP_HEAD / 4 << 4, [TCP_FLAGS] = ACK | 0x04};
    uint32_t ack = htonl(s->seq + 1);
    put_ports(h, &s->to, &s->from);
    memcpy(h + 8, &ack, 4);
    if (net_addr_is_v4(&s->to.at)) { /* the kernel does it for IPv6 only */
        uint8_t pseudo[12] = {[9] = IPPROTO_TCP, [11] = TCP_HEAD};
        put_v4(pseudo, &s->to);
        put_v4(pseudo + 4, &s->from);
        put_sum(h + 16, add_words(add_words(0, pseudo, sizeof pseudo), h, sizeof h));
    }
    return send_back(s, IPPROTO_TCP, h, sizeof h, e);
}

static int send_icmp4(const struct syn *s, bool network, struct err *e) {
    uint8_t m[8 + IP4_HEAD + 8] = {ICMP_DEST_UNREACH,
                                   network ? ICMP_NET_UNREACH : ICMP_HOST_UNREACH};
    uint8_t *ip = m + 8, *tcp = ip + IP4_HEAD;
    uint32_t seq = htonl(s->seq);
    ip[0] = 0x45;
    ip[3] = IP4_HEAD + TCP_HEAD;
    ip[8] = 64;
    ip[9] = IPPROTO_TCP;
    put_v4(ip + 12, &s->from);
    put_v4(ip + 16, &s->to);
    put_ports(tcp, &s->from, &s->to);
    memcpy(tcp + TCP_SEQ, &seq, 4);
    put_sum(m + 2, add_words(0, m, sizeof m));
    return send_back(s, IPPROTO_ICMP, m, sizeof m, e);
}

static int send_icmp6(const struct syn *s, bool network, struct err *e) {
    uint8_t m[8 + IP6_HEAD + TCP_HEAD] = {ICMP6_DST_UNREACH, network ? ICMP6_DST_UNREACH_NOROUTE
                                                                     : ICMP6_DST_UNREACH_ADDR};
    uint8_t *ip = m + 8, *tcp = ip + IP6_HEAD;
    uint32_t seq = htonl(s->seq);
    ip[0] = 0x60;
    ip[5] = TCP_HEAD;
    ip[6] = IPPROTO_TCP;
    ip[7] = 64;
    memcpy(ip + 8, s->from.at.b, 16);
    memcpy(ip + 24, s->to.at.b, 16);
    put_ports(tcp, &s->from, &s->to);
    memcpy(tcp + TCP_SEQ, &seq, 4);
    tcp[TCP_OFFSET] = TCP_HEAD / 4 << 4;
    tcp[TCP_FLAGS] = SYN;
    return send_back(s, IPPROTO_ICMPV6, m, sizeof m, e); /* the kernel puts the sum */
}

bool syn_can_fail(int errnum) {
    return errnum != ETIMEDOUT;
}

int syn_fail(const struct syn *s, int errnum, struct err *e) {
    bool network = errnum == ENETUNREACH || errnum == ENETDOWN;
    if (errnum == ECONNREFUSED || errnum == ECONNRESET)
        return send_reset(s, e);
    return net_addr_is_v4(&s->to.at) ? send_icmp4(s, network, e) : send_icmp6(s, network, e);
}
