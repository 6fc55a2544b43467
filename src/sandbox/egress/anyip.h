#pragma once
/* Addresses of the internet are addresses of this network namespace: what is sent there arrives at
 * its loopback. Needs CAP_NET_ADMIN over the namespace.
 *
 * SECURITY: of IPv4 that is every address; of IPv6 only those that were asked for one by one. The
 * kernel keeps a neighbour for each IPv6 address that something was sent to, at the loopback
 * without any bound, and no control group is charged for it. */

#include "base/err.h"
#include "sandbox/egress/end.h"

#define ANYIP_OWN4   "10.0.2.15" /* the source of connections to outside */
#define ANYIP_NAMES4 "10.0.2.3"  /* the name server in /etc/resolv.conf */
#define ANYIP_OWN6   "fd00::15"

/* *ret_v6: whether IPv6 is there, too. A namespace that has them already is no fault. */
int anyip_add(bool *ret_v6, struct err *e);
/* One more address of IPv6, or one less. */
int anyip_add_v6(const struct net_addr *a, struct err *e);
int anyip_remove_v6(const struct net_addr *a, struct err *e);
/* Whether a connection to it stays among the programs of the namespace. */
bool anyip_is_inside(const struct end *a);
