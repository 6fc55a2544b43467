/* The set ipybox: the tools of that project's MCP server (0.6), with its names, arguments and
 * texts. upload_file and download_file name files of the client's machine: `cloche mcp` has those.
 */

#include "api/core/api_state.h"
#include "api/mcp/cell_tool.h"
#include "api/mcp/fresh.h"
#include "api/mcp/place.h"
#include "api/mcp/tools.h"
#include "http/fields.h"

#define TIMEOUT_S 120 /* upstream's */

static const struct field fields[] = {
    {.name = "code", .type = FIELD_STRING, .flags = FIELD_REQUIRED | FIELD_LONG},
    {.name = "timeout", .type = FIELD_REAL, .fallback = "120", .help = "seconds"},
};
static const struct schema ipybox_cell_schema = {SCHEMA("IpyboxCell", fields)};
static const struct schema ipybox_reset_schema = {.name = "IpyboxReset"};

/* Clients of ipybox ask for its own default, which may be more than there is here. */
static uint32_t timeout_ms(const struct mcp_call *c) {
    uint32_t most = mcp_who(c)->caller.api->config->maxima.timeout_ms;
    const json_t *given = json_object_get(mcp_args(c), "timeout");
    double ms = json_is_number(given) ? json_number_value(given) * 1e3 : TIMEOUT_S * 1e3;
    if (!(ms >= 1))
        return 1;
    return most && ms > most ? most : ms > UINT32_MAX ? UINT32_MAX : (uint32_t)ms;
}

static void ipybox_cell_at(struct mcp_call *c, struct live *l) {
    cell_tool_run(c, l,
                  &(struct cell_tool_options){.code = json_object_get(mcp_args(c), "code"),
                                              .timeout_ms = timeout_ms(c),
                                              .is_ipybox = true});
}

static void ipybox_cell_call(struct mcp_call *c) {
    place_use(c, ipybox_cell_at);
}

const struct mcp_tool ipybox_cell_tool = {
    .name = "execute_ipython_cell",
    .title = "Execute an IPython cell",
    .description = "Executes a cell in a stateful IPython kernel and returns its output. Variables "
                   "stay from call to call; so do files in /app.",
    .takes = &ipybox_cell_schema,
    .hints = MCP_DESTRUCTIVE,
    .sets = MCP_IPYBOX,
    .call = ipybox_cell_call,
};

/* ---- reset ---- */

/* A tool without a value has no content there. */
static void ipybox_reset_at(struct mcp_call *c, struct live *l) {
    fresh_kernel(c, l, mcp_answer);
}

static void ipybox_reset_call(struct mcp_call *c) {
    place_use(c, ipybox_reset_at);
}

const struct mcp_tool ipybox_reset_tool = {
    .name = "reset",
    .title = "Reset the kernel",
    .description = "Begins with a new kernel: variables go, files stay.",
    .takes = &ipybox_reset_schema,
    .hints = MCP_DESTRUCTIVE,
    .sets = MCP_IPYBOX,
    .is_void = true,
    .call = ipybox_reset_call,
};
