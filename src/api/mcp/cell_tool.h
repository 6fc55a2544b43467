#pragma once
/* A cell that a tool call runs: run_python, and ipybox's execute_ipython_cell. For api/mcp only. */

#include "engine/live/live.h"
#include "mcp/call.h"

struct cell_tool_options {
    const json_t *code;  /* a string of the call's arguments */
    uint32_t timeout_ms; /* 0: the sandbox's */
    bool reset;          /* a fresh kernel first */
    bool is_ipybox;      /* the result is as upstream writes it */
};
/* Answers the call when it is over. */
void cell_tool_run(struct mcp_call *c, struct live *l, const struct cell_tool_options *o);
/* The argument `timeout_s` in milliseconds, 0 when there is none. False: the call has its answer.
 */
bool cell_tool_timeout(struct mcp_call *c, const char *name, uint32_t *ret_ms);
/* Of an event: what it prints, for the call's progress. */
void cell_tool_progress(struct mcp_call *c, const char *type, const char *json, size_t len);
