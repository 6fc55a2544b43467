#pragma once
/* Which name servers to ask. */

#include "base/err.h"
#include "net/addr.h"

#define SERVERS_MOST 8

struct servers {
    unsigned n;
    struct {
        struct net_addr address;
        uint16_t port;
    } at[SERVERS_MOST];
};

/* "192.0.2.53, 192.0.2.54:5353, [2001:db8::53]:53"; "" is none. Adds to *ret. */
int servers_parse(const char *text, struct servers *ret, struct err *e);
/* The lines "nameserver ADDRESS" of a resolv.conf; others, and what cannot be read, are none. The
 * descriptor may be -1. */
void servers_read(int fd, struct servers *ret);
