#pragma once
/* The sandbox of one `cloche mcp`: what it is called, what it is made with, and its end. */

#include "base/buf.h"
#include "base/err.h"
#include "remote/mcp/options.h"

#include <stdbool.h>

struct remote;

struct home {
    char name[80];     /* of the sandbox */
    bool is_ours;      /* nobody gave it a name: it ends with us */
    struct buf path;   /* of the server's MCP, with the query */
    struct buf header; /* what it is made with and no query should tell; or "" */
};
#define HOME_INIT                                                                                  \
    { .path = BUF_INIT, .header = BUF_INIT }

int home_make(struct home *h, const struct mcp_options *o, struct err *e);
/* The path of one of its files, with the same query. */
void home_file(const struct home *h, const char *path, struct buf *to);
/* What it may reach: --network and each --allowed-domain, with commas. */
void home_network(const struct mcp_options *o, struct buf *to);
/* The server's MCP for a client that goes there itself. */
void home_url(const struct mcp_options *o, const char *server, struct buf *to);
/* Deletes it if it is ours. */
void home_end(const struct home *h, struct remote *r);
void home_done(struct home *h);
