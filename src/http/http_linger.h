#pragma once
/* Connections that are over for us while their client still sends. */

#include <stdbool.h>

struct http;

/* Closes our direction and throws away what still comes, for a while; the connection counts as one
 * until then. False when that is not possible: the caller closes the socket. */
bool http_linger(struct http *h, int fd);
