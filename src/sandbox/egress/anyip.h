#pragma once
/* Every address is an address of this network namespace: whatever is sent to the internet arrives
 * at its loopback. Needs CAP_NET_ADMIN over the namespace. */

#include "base/err.h"
#include "sandbox/egress/end.h"

#define ANYIP_OWN4   "10.0.2.15" /* the source of connections to outside */
#define ANYIP_NAMES4 "10.0.2.3"  /* the name server in /etc/resolv.conf */
#define ANYIP_OWN6   "fd00::15"

/* *ret_v6: whether IPv6 is there, too. A namespace that has them already is no fault. */
int anyip_add(bool *ret_v6, struct err *e);
/* Whether a connection to it stays among the programs of the namespace. */
bool anyip_is_inside(const struct end *a);
