#pragma once
/* The handshake of a WebSocket: RFC 6455, section 4.2. */

#include "http/ws.h"

/* What is wrong with the request as a handshake, in words, or NULL. *ret_status: 426 when another
 * protocol or version is asked for (the headers for that are added), else 400. */
const char *ws_wrong(struct http_req *r, int *ret_status);
/* The reply to a good handshake. NULL when none is possible any more. */
struct ws *ws_accept(struct http_req *r, const struct ws_options *o);
