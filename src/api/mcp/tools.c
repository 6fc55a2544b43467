/* See tools.h. */

#include "api/mcp/tools.h"

#include <stddef.h>

static const struct mcp_tool *const tools[] = {
    &run_python_tool,  &run_shell_tool,    &read_file_tool,
    &write_file_tool,  &list_files_tool,   &sandbox_tool,
    &ipybox_cell_tool, &ipybox_reset_tool, NULL};

static const struct mcp_template *const templates[] = {&sandbox_file_template, &output_template,
                                                       &image_template, NULL};

/* There are none; clients that ask for a list get one. */
static const struct mcp_prompt *const prompts[] = {NULL};

const struct mcp_registry mcp_registry_of_cloche = {
    .tools = tools, .templates = templates, .prompts = prompts};
