#pragma once
/* What the answer of a tool says beside its content: how the execution ended, and where its output
 * is. For api/mcp only. */

#include "api/mcp/report.h"
#include "mcp/call.h"

/* `_meta["dev.cloche/receipt"]`. */
void receipt_put(struct mcp_call *c, const struct report *r, const char *execution,
                 const char *sandbox);
/* The link to all that it said. */
void receipt_link(struct mcp_call *c, const char *execution);
