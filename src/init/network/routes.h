#pragma once
/* Addresses of IPv6 that the namespace takes for its own, as soon as a connection to them is
 * allowed: see sandbox/egress/anyip.h. */

#include "net/addr.h"

struct network;

#define ROUTES 1024

struct route_table {
    struct net_addr to[ROUTES];
    unsigned n, oldest;
};

/* 0 or an errno. */
int routes_reach(struct network *n, const struct net_addr *to);
