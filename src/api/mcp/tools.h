#pragma once
/* What cloche offers over MCP. One more tool is a file here with its table of fields and its
 * handler, a line below and one in tools.c. For api/ only. */

#include "mcp/registry.h"

extern const struct mcp_tool run_python_tool;

extern const struct mcp_registry mcp_registry_of_cloche;
