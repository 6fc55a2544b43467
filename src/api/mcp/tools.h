#pragma once
/* What cloche offers over MCP. One more tool is a file here with its table of fields and its
 * handler, a line below and one in tools.c. For api/ only. */

#include "mcp/registry.h"

extern const struct mcp_tool run_python_tool, run_shell_tool, sandbox_tool;
extern const struct mcp_tool read_file_tool, write_file_tool, list_files_tool;
extern const struct mcp_tool ipybox_cell_tool, ipybox_reset_tool;
extern const struct mcp_template sandbox_file_template, output_template, image_template;

extern const struct mcp_registry mcp_registry_of_cloche;
