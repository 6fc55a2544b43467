/* See addr.h. */

#include "net/addr.h"
#include "net/bounds.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static const uint8_t v4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool net_addr_is_v4(const struct net_addr *a) {
    return memcmp(a->b, v4_prefix, sizeof v4_prefix) == 0;
}

bool net_addr_same(const struct net_addr *a, const struct net_addr *b) {
    return memcmp(a->b, b->b, sizeof a->b) == 0;
}

struct net_addr net_addr_of_v4(const uint8_t b[4]) {
    struct net_addr a;
    memcpy(a.b, v4_prefix, sizeof v4_prefix);
    memcpy(a.b + 12, b, 4);
    return a;
}

void net_addr_v4(const struct net_addr *a, uint8_t ret[4]) {
    memcpy(ret, a->b + 12, 4);
}

bool net_addr_from(const void *sockaddr, size_t len, struct net_addr *ret, uint16_t *ret_port) {
    sa_family_t family;
    if (len < sizeof family)
        return false;
    memcpy(&family, sockaddr, sizeof family);
    if (family == AF_INET && len >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in in;
        memcpy(&in, sockaddr, sizeof in);
        uint8_t b[4];
        memcpy(b, &in.sin_addr, sizeof b);
        *ret = net_addr_of_v4(b);
        *ret_port = ntohs(in.sin_port);
        return true;
    }
    /* The kernel takes one without the scope's id (RFC 2133), which is 24 bytes long. */
    if (family == AF_INET6 && len >= offsetof(struct sockaddr_in6, sin6_scope_id)) {
        struct sockaddr_in6 in6 = {0};
        memcpy(&in6, sockaddr, offsetof(struct sockaddr_in6, sin6_scope_id));
        memcpy(ret->b, &in6.sin6_addr, sizeof ret->b);
        *ret_port = ntohs(in6.sin6_port);
        return true;
    }
    return false;
}

socklen_t net_addr_to(const struct net_addr *a, uint16_t port, struct sockaddr_storage *ret) {
    memset(ret, 0, sizeof *ret);
    if (net_addr_is_v4(a)) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
        memcpy(&in.sin_addr, a->b + 12, 4);
        memcpy(ret, &in, sizeof in);
        return sizeof in;
    }
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    memcpy(&in6.sin6_addr, a->b, sizeof a->b);
    memcpy(ret, &in6, sizeof in6);
    return sizeof in6;
}

bool net_addr_parse(const char *text, size_t len, struct net_addr *ret) {
    char copy[NET_ADDR_TEXT];
    uint8_t v4[4];
    if (len == 0 || len >= sizeof copy || memchr(text, '\0', len) != NULL)
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (inet_pton(AF_INET, copy, v4) == 1) {
        *ret = net_addr_of_v4(v4);
        return true;
    }
    return inet_pton(AF_INET6, copy, ret->b) == 1;
}

/* The first `bits` of it. */
static struct net_addr addr_masked(const struct net_addr *a, unsigned bits) {
    struct net_addr m = {0};
    memcpy(m.b, a->b, bits / 8);
    if (bits % 8 != 0)
        m.b[bits / 8] = (uint8_t)(a->b[bits / 8] & (0xff00 >> bits % 8));
    return m;
}

bool net_cidr_is_good(const struct net_cidr *c) {
    if (c->bits > 128)
        return false;
    struct net_addr m = addr_masked(&c->at, c->bits);
    return net_addr_same(&m, &c->at);
}

const char *net_cidr_parse(const char *text, size_t len, struct net_cidr *ret) {
    const char *slash = memchr(text, '/', len);
    size_t alone = slash != NULL ? (size_t)(slash - text) : len;
    struct net_cidr c = {.bits = 128};
    if (!net_addr_parse(text, alone, &c.at))
        return "it is no address";
    /* "::ffff:10.0.0.0/104" could be meant in two ways. */
    bool v4 = net_addr_is_v4(&c.at);
    if (v4 && memchr(text, ':', alone) != NULL)
        return "an IPv4 address is written with four numbers";
    if (slash != NULL) {
        size_t digits = len - alone - 1;
        unsigned bits = 0;
        if (digits == 0 || digits > 3 || (digits > 1 && slash[1] == '0'))
            return "what is behind the '/' is no number of bits";
        for (size_t i = 1; i <= digits; i++) {
            if (slash[i] < '0' || slash[i] > '9')
                return "what is behind the '/' is no number of bits";
            bits = bits * 10 + (unsigned)(slash[i] - '0');
        }
        if (bits > (v4 ? 32 : 128))
            return v4 ? "an IPv4 address has 32 bits" : "an IPv6 address has 128 bits";
        c.bits = (uint8_t)(bits + (v4 ? 96 : 0));
    }
    if (!net_cidr_is_good(&c))
        return "the bits behind those of the range must be 0";
    *ret = c;
    return NULL;
}

const char *net_addr_text(const struct net_addr *a, char to[NET_ADDR_TEXT]) {
    bool v4 = net_addr_is_v4(a);
    if (inet_ntop(v4 ? AF_INET : AF_INET6, a->b + (v4 ? 12 : 0), to, NET_ADDR_TEXT) == NULL)
        to[0] = '\0';
    return to;
}

const char *net_cidr_text(const struct net_cidr *c, char to[NET_CIDR_TEXT]) {
    char address[NET_ADDR_TEXT];
    bool v4 = c->bits >= 96 && net_addr_is_v4(&c->at);
    net_addr_text(&c->at, address);
    if (c->bits == 128)
        snprintf(to, NET_CIDR_TEXT, "%s", address);
    else
        snprintf(to, NET_CIDR_TEXT, "%s/%u", address, c->bits - (v4 ? 96u : 0u));
    return to;
}

bool net_cidr_has(const struct net_cidr *c, const struct net_addr *a) {
    /* "::/0" is every address of IPv6, not those of IPv4, too, which lie in it here. */
    if (c->bits < 96 && net_addr_is_v4(a))
        return false;
    struct net_addr m = addr_masked(a, c->bits);
    return net_addr_same(&m, &c->at);
}

bool net_cidr_within(const struct net_cidr *inner, const struct net_cidr *outer) {
    return inner->bits >= outer->bits && net_cidr_has(outer, &inner->at);
}

/* ---- closed ranges */

#define V4(a, b, c, d, n)                                                                          \
    { {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d}}, 96 + (n) }
#define V6(n, ...)                                                                                 \
    { {{__VA_ARGS__}}, n }

/* SECURITY: NAT64, 6to4, Teredo and IPv4-compatible addresses carry an IPv4 address that nobody has
 * judged: they are closed as wholes. The mapped ones (::ffff:0:0/96) are IPv4 here. */
static const struct net_cidr addr_closed_ranges[] = {
    V4(0, 0, 0, 0, 8),                                /* "this network" */
    V4(10, 0, 0, 0, 8),                               /* private */
    V4(100, 64, 0, 0, 10),                            /* behind a carrier's NAT */
    V4(127, 0, 0, 0, 8),                              /* loopback */
    V4(168, 63, 129, 16, 32),                         /* the platform's own service, in Azure */
    V4(169, 254, 0, 0, 16),                           /* link-local, metadata of clouds */
    V4(172, 16, 0, 0, 12),                            /* private */
    V4(192, 0, 0, 0, 24),                             /* of protocols */
    V4(192, 88, 99, 0, 24),                           /* relays to 6to4 */
    V4(192, 168, 0, 0, 16),                           /* private */
    V4(198, 18, 0, 0, 15),                            /* benchmarks */
    V4(224, 0, 0, 0, 3),                              /* multicast, reserved, broadcast */
    V6(96, 0),                                        /* ::, ::1, IPv4-compatible */
    V6(96, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0), /* IPv4-translated (SIIT) */
    V6(96, 0, 0x64, 0xff, 0x9b),                      /* NAT64 */
    V6(48, 0, 0x64, 0xff, 0x9b, 0, 1),                /* NAT64 of one's own */
    V6(64, 1, 0),                                     /* discard */
    V6(32, 0x20, 0x01, 0, 0),                         /* Teredo */
    V6(16, 0x20, 0x02),                               /* 6to4 */
    V6(7, 0xfc),                                      /* unique local */
    V6(10, 0xfe, 0x80),                               /* link-local */
    V6(10, 0xfe, 0xc0),                               /* site-local */
    V6(8, 0xff),                                      /* multicast */
};

#define CLOSED_ (sizeof addr_closed_ranges / sizeof *addr_closed_ranges)

const struct net_cidr *net_addr_closed(const struct net_addr *a) {
    for (size_t i = 0; i < CLOSED_; i++)
        if (net_cidr_has(&addr_closed_ranges[i], a))
            return &addr_closed_ranges[i];
    return NULL;
}

bool net_cidr_is_closed(const struct net_cidr *c) {
    for (size_t i = 0; i < CLOSED_; i++)
        if (net_cidr_within(c, &addr_closed_ranges[i]))
            return true;
    return false;
}

bool net_cidr_is_never(const struct net_cidr *c) {
    static const struct net_cidr never[] = {
        V4(0, 0, 0, 0, 8), V4(127, 0, 0, 0, 8), V4(224, 0, 0, 0, 4), V6(96, 0), V6(8, 0xff),
    };
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (net_cidr_within(c, &never[i]))
            return true;
    return false;
}

bool net_addr_is_never(const struct net_addr *a) {
    return net_cidr_is_never(&(struct net_cidr){*a, 128});
}

struct net_addr net_sentinel(bool v6) {
    struct net_addr a = {0};
    const char *text = v6 ? NET_SENTINEL_6 : NET_SENTINEL_4;
    net_addr_parse(text, strlen(text), &a);
    return a;
}

bool net_addr_is_sentinel(const struct net_addr *a) {
    struct net_addr v4 = net_sentinel(false), v6 = net_sentinel(true);
    return net_addr_same(a, &v4) || net_addr_same(a, &v6);
}
