#pragma once
/* What the HTTP service needs from the one who starts it: its listening sockets and directories.
 * They belong to `cloche serve` and outlive a server that dies. */

#include "config/config.h"

struct http_sockets {
    int fds[HTTP_FD_DIRS_ + HTTP_MAX_LISTENERS]; /* owned; in the order that the server expects */
    unsigned n;
    struct buf where; /* what to tell the user: URLs, a line each */
};

/* Opens and makes all of it, and sets what the configuration says about it. Nothing is done when
 * HTTP is off. */
int http_sockets_open(struct config *c, struct http_sockets *ret, struct err *e);
void http_sockets_done(struct http_sockets *s, const struct config *c);
