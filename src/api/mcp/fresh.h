#pragma once
/* A fresh kernel in a sandbox, for a tool call. For api/mcp only. */

#include "engine/live/live.h"
#include "mcp/call.h"

/* `then` when it is there; otherwise the call has its answer. */
void fresh_kernel(struct mcp_call *c, struct live *l, mcp_handler *then);
