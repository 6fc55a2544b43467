#pragma once
/* What the usher counts, in memory that it shares with init. Init reads it only, and believes
 * nothing of it but that these are numbers. */

#include "net/bounds.h"

#include <stdint.h>

#define USHER_SLOTS (NET_PENDING + NET_CONNECTIONS)

struct usher_page {
    uint64_t spent;  /* bytes of all connections, of earlier ushers too */
    int32_t pid;     /* of the usher, as init sees it; set before it runs */
    uint32_t namers; /* sockets for questions over TCP that are open */
    struct usher_count {
        uint64_t out, in;
    } slots[USHER_SLOTS];
};
