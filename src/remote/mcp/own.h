#pragma once
/* The server that `cloche mcp` starts for itself, as seen from here: a socket to the process that
 * keeps it (src/cli/mcp.c). It lives until we let go of it, however we end. */

#include "base/err.h"
#include "remote/mcp/options.h"

struct own_server {
    int fd; /* or -1 */
};

/* The one that cloche left us, if it did. */
void own_server_find(struct own_server *o);
/* Starts it; *ret_url is its URL (free()). A signal on the signalfd ends the wait: *ret_url is NULL
 * then. */
int own_server_start(struct own_server *o, const struct mcp_options *options, int signals,
                     char **ret_url, struct err *e);
/* Returns when it has ended and left nothing behind. */
void own_server_end(struct own_server *o);
