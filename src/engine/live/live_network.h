#pragma once
/* What a live sandbox may reach of the network, while it lives. */

#include "engine/core/network.h"
#include "engine/network/terms.h"

struct live;

/* As clients are told of it: JSON. */
const char *live_network(const struct live *l);
/* Other terms from now on: takes *t. 1: `done` is called when they are in force, or will not be
 * soon (core/network.h); 0: they are, and nobody is called; -1: they were refused. */
int live_network_set(struct live *l, struct network_terms **t, network_fn *done, void *arg,
                     struct err *e);
/* Whoever waited does not any more. */
void live_network_leave(struct live *l, const void *arg);
