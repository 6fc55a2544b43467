#pragma once
/* Addresses: 16 bytes, those of IPv4 mapped (::ffff:a.b.c.d). So one comparison serves both
 * families, and an IPv4 address has one form however a program wrote it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct net_addr {
    uint8_t b[16];
};

/* The first `bits` of 128 count; those of IPv4 are 96 more than written. */
struct net_cidr {
    struct net_addr at; /* the rest is 0 */
    uint8_t bits;
};

#define NET_ADDR_TEXT 46 /* with the NUL */
#define NET_CIDR_TEXT 50

bool net_addr_is_v4(const struct net_addr *a);
bool net_addr_same(const struct net_addr *a, const struct net_addr *b);
struct net_addr net_addr_of_v4(const uint8_t b[4]);
/* Where net_addr_is_v4. */
void net_addr_v4(const struct net_addr *a, uint8_t ret[4]);

/* From what a program gave to connect(2); false for another family or one that is too short. */
bool net_addr_from(const void *sockaddr, size_t len, struct net_addr *ret, uint16_t *ret_port);
/* AF_INET for those of IPv4, else AF_INET6; returns the length. */
socklen_t net_addr_to(const struct net_addr *a, uint16_t port, struct sockaddr_storage *ret);

/* "198.51.100.7", "2001:db8::1", without brackets; false: it is none. Nothing but four decimal
 * numbers is IPv4: what inet_aton makes of "0x7f.1" or "010.0.0.1" is refused. */
bool net_addr_parse(const char *text, size_t len, struct net_addr *ret);
/* The same with "/bits" or without; bits behind them must be 0. NULL, or why it is none. */
const char *net_cidr_parse(const char *text, size_t len, struct net_cidr *ret);
/* Each returns `to`. */
const char *net_addr_text(const struct net_addr *a, char to[NET_ADDR_TEXT]);
const char *net_cidr_text(const struct net_cidr *c, char to[NET_CIDR_TEXT]);

bool net_cidr_has(const struct net_cidr *c, const struct net_addr *a);
bool net_cidr_within(const struct net_cidr *inner, const struct net_cidr *outer);
bool net_cidr_is_good(const struct net_cidr *c); /* from outside: its bits, and the rest is 0 */

/* SECURITY: the range of private, local and otherwise special addresses that it lies in, or NULL.
 * Nothing opens these but an address rule that lies in the range itself. */
const struct net_cidr *net_addr_closed(const struct net_addr *a);
/* Whether all of these addresses are in one closed range. */
bool net_cidr_is_closed(const struct net_cidr *c);

/* Addresses that mean the sandbox itself, or nobody: no rule opens them. */
bool net_addr_is_never(const struct net_addr *a);
bool net_cidr_is_never(const struct net_cidr *c);

/* The addresses in bounds.h. */
struct net_addr net_sentinel(bool v6);
bool net_addr_is_sentinel(const struct net_addr *a);
