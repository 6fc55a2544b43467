#pragma once
/* What a model is told before its first call: instructions, and what the descriptions of the tools
 * that run something depend on. For api/mcp only. */

#include "mcp/registry.h"

/* For `describe` and `hints_for` of such a tool. */
void about_run(const struct mcp_asker *who, struct buf *to);
unsigned about_hints(const struct mcp_asker *who);
/* At most ABOUT_INSTRUCTIONS characters. */
#define ABOUT_INSTRUCTIONS 1500
void about_instructions(const struct mcp_asker *who, struct buf *to);
