/* The tool run_python. */

#include "api/mcp/about.h"
#include "api/mcp/cell_tool.h"
#include "api/mcp/place.h"
#include "api/mcp/tools.h"
#include "http/fields.h"

static const struct field fields[] = {
    {.name = "code",
     .type = FIELD_STRING,
     .flags = FIELD_REQUIRED | FIELD_LONG,
     .help = "a cell of Python: what its last expression is worth is shown, as in a notebook"},
    FIELD_OF_SANDBOX,
    {.name = "timeout_s",
     .type = FIELD_REAL,
     .help = "seconds; then it is interrupted, what it printed and its variables are kept"},
    {.name = "reset",
     .type = FIELD_BOOL,
     .fallback = "false",
     .help = "begin with a fresh interpreter: variables go, files stay"},
};
static const struct schema run_python_schema = {SCHEMA("RunPython", fields)};

static void run_python_at(struct mcp_call *c, struct live *l) {
    const json_t *args = mcp_args(c);
    uint32_t timeout_ms;
    if (!cell_tool_timeout(c, "timeout_s", &timeout_ms))
        return;
    cell_tool_run(c, l,
                  &(struct cell_tool_options){.code = json_object_get(args, "code"),
                                              .timeout_ms = timeout_ms,
                                              .reset = field_bool(args, "reset", false)});
}

static void run_python_call(struct mcp_call *c) {
    place_use(c, run_python_at);
}

const struct mcp_tool run_python_tool = {
    .name = "run_python",
    .title = "Run Python",
    .description =
        "Runs Python code in a sandbox, as a cell of a notebook. Variables, imports and files in "
        "/workspace stay from call to call. What is printed, the value of the last expression and "
        "figures (matplotlib, PIL: shown as images) come back; of a DataFrame its text. `await` "
        "works at the top level, %pip and !command too. Long output is cut in the middle: print "
        "what you need, write the rest to a file. One call at a time runs in a sandbox, others "
        "wait; a sandbox with another name is a machine of its own.",
    .takes = &run_python_schema,
    .hints = MCP_DESTRUCTIVE,
    .sets = MCP_CORE,
    .call = run_python_call,
    .describe = about_run,
    .hints_for = about_hints,
};
