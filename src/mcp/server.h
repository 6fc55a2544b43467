#pragma once
/* An MCP server over HTTP (streamable HTTP), both eras on one endpoint. Whoever has the endpoint
 * knows who asks, and offers a registry; all of the protocol is here.
 *
 * A request: the host finds out who asks (keys, origins), makes an asker of it and calls mcp_serve.
 * The protocol is the request's guest (http_set_guest), and hears of its end by mcp_request_over.
 */

#include "mcp/asker.h"
#include "mcp/registry.h"
#include "mcp/token.h"

#include <stdbool.h>

struct crew;
struct http_req;
struct loop;
struct mcp;

struct mcp_host {
    struct loop *loop; /* borrowed, as all of this */
    struct crew *crew; /* for large messages */
    const char *name, *title, *version;
    const struct mcp_registry *offers;
    void (*instruct)(const struct mcp_asker *who, struct buf *to); /* instructions; or NULL */
    bool changes;                 /* the lists change: mcp_changed */
    bool watches;                 /* resources change: mcp_updated */
    bool logs;                    /* mcp_log is used */
    uint8_t secret[TOKEN_SECRET]; /* the same after a restart */
    /* The client has ended the legacy session in who->session; or NULL. */
    void (*on_session_over)(const struct mcp_asker *who);
};
struct mcp *mcp_new(const struct mcp_host *h);

/* GET, POST or DELETE. Takes `who`. The body has not been taken yet. */
void mcp_serve(struct mcp *m, struct http_req *r, struct mcp_asker *who);
/* For the host's on_finished. */
void mcp_request_over(struct http_req *r);

enum mcp_list { MCP_TOOLS, MCP_PROMPTS, MCP_RESOURCES, MCP_LISTS_ };
void mcp_changed(struct mcp *m, enum mcp_list which);
void mcp_updated(struct mcp *m, const char *uri);
