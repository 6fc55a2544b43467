#pragma once
/* The server's name in a TLS ClientHello.
 *
 * SECURITY: hostile input, read by the usher before a byte of it goes out. Whoever calls looks at
 * what has come so far (MSG_PEEK), from the beginning each time. */

#include "net/bounds.h"

#include <stddef.h>
#include <stdint.h>

enum net_heard {
    NET_HEARD_MORE, /* *ret_need: how many bytes must be there, from the first, before it is worth
                       another look */
    NET_HEARD_NAME, /* in `name`, lower case; *ret_need: how many bytes its records have */
    NET_HEARD_BAD,  /* none, or nothing that we understand; `name` is "" */
};

/* At most NET_HEAD_BYTES are looked at: a hello that is not complete then is bad. */
enum net_heard net_hello_read(const uint8_t *data, size_t len, char name[NET_NAME_SIZE],
                              size_t *ret_need);

/* What a look at the bytes of a connection finds (tls.h, http_head.h). */
struct net_looked {
    size_t pass;
    enum net_heard heard;
    size_t need;
    char name[NET_NAME_SIZE]; /* lower case, without a port; an address as it was written */
};
