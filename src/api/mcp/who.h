#pragma once
/* Who asks over MCP: the caller of the API, and what the URL says of its sandboxes. The host of
 * every mcp_call is one of these: mcp_who(c). For api/ only. */

#include "api/core/caller.h"
#include "config/config.h"
#include "mcp/call.h"

#define MCP_NAME_MAX    64   /* of a sandbox */
#define MCP_NETWORK_MAX 2000 /* bytes of what the URL says of the network */

/* The sets of tools; ?tools= of the URL names them, separated by commas. */
enum mcp_set { MCP_CORE = 1, MCP_FILES = 2, MCP_FORKS = 4, MCP_IPYBOX = 8 };

struct mcp_who {
    struct mcp_asker asker;
    struct caller caller;           /* its tenant, key, limits; caller.api is everything else */
    char sandbox[MCP_NAME_MAX + 1]; /* meant where a call names none */
    /* Of sandboxes that are made (terms.h). "" and 0: the settings say. */
    char profile[65];
    char network[MCP_NETWORK_MAX + 1];
    struct limits limits;
    json_t *with;     /* owned: what they are made with besides (made_with.h); or NULL */
    bool is_new;      /* a call made its sandbox, */
    char reason[200]; /* and this is why there is not the one before; or "" */
};

static inline struct mcp_who *mcp_who(const struct mcp_call *c) {
    return (struct mcp_who *)mcp_asker(c);
}
