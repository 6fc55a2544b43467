#pragma once
/* One end of a TCP connection. */

#include "net/addr.h"

struct end {
    struct net_addr at;
    uint16_t port;
};

static inline bool end_same(const struct end *a, const struct end *b) {
    return a->port == b->port && net_addr_same(&a->at, &b->at);
}
