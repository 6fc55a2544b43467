#pragma once
/* What a name server answered to a question for the addresses of a name. SECURITY: hostile input;
 * nothing of it goes on but addresses, a time to live and whether the name exists. */

#include "net/addr.h"
#include "net/bounds.h"
#include "net/dns.h"

struct reply {
    enum net_rcode rcode;
    uint32_t ttl_s; /* at most NET_TTL_MAX */
    unsigned n;
    struct net_addr at[NET_ADDRESSES];
};

/* `name` with the letters as they were asked for, `type` NET_DNS_A or NET_DNS_AAAA. What cannot be
 * read, or is an answer to something else, is NET_RCODE_FAILED. */
void reply_read(const uint8_t *packet, size_t len, const char *name, uint16_t type,
                struct reply *ret);
