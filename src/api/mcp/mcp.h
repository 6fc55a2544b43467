#pragma once
/* The server's MCP endpoint, /mcp: who asks is the API's affair, what is offered in tools.h, the
 * protocol in src/mcp. For api/ only. */

#include "api/core/route.h"
#include "base/err.h"

struct api;

int mcp_start(struct api *a, struct err *e);

extern const struct route_table *const mcp_tables[]; /* ends with NULL */
