#pragma once
/* Questions for names, as a sandbox's programs send them, and our replies. A reply is composed
 * anew: the question as it was asked (the case of its letters is kept), and addresses. */

#include "net/addr.h"
#include "net/bounds.h"

#define NET_DNS_A    1
#define NET_DNS_PTR  12
#define NET_DNS_AAAA 28

enum net_rcode { NET_RCODE_OK = 0, NET_RCODE_FAILED = 2, NET_RCODE_NO_NAME = 3 };

struct net_question {
    uint16_t id, type;
    bool recursion; /* was desired */
    uint8_t len;    /* of the name in `wire` */
    uint8_t wire[255];
    char name[NET_NAME_SIZE]; /* lower case, no dot at the end; "" for the root */
};

/* SECURITY: hostile input. False: not one plain question of class IN, to be dropped. */
bool net_dns_read(const uint8_t *packet, size_t len, struct net_question *ret);

/* Writes at most `most` bytes (never less than 300) and returns how many. Addresses of the other
 * family than was asked for are left out, and so are those that do not fit. */
size_t net_dns_reply(const struct net_question *q, enum net_rcode rcode, uint32_t ttl_s,
                     const struct net_addr *addresses, size_t n, uint8_t *to, size_t most);
