#pragma once
/* A request against the most that the operator lets it have. */

#include "net/policy.h"

/* Holds a request against the most that may be granted. 0: all of it is granted, and what the
 * maximum says of bounds, denied ranges and strict_tls is part of `p` now. -1, of kind
 * "network_not_allowed": names the first rule or field that falls away. `where` is the request's
 * field ("network"). */
int net_policy_within(struct net_policy *p, const struct net_policy *most, const char *where,
                      struct err *e);
