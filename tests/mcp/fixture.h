#pragma once
/* What the conformance suite of MCP calls, by the names that it knows: the texts are in the suite's
 * own descriptions of its scenarios. */

#include "loop/loop.h"
#include "mcp/call.h"

struct mcp;

/* The one server of this program. */
extern struct loop *fixture_loop;
extern struct mcp *fixture_server;

#define FIXTURE_PNG                                                                                \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJg" \
    "gg=="

/* The next step of a call, a moment later. */
void fixture_later(struct mcp_call *c, mcp_handler *next);

extern const struct mcp_tool fixture_text, fixture_image, fixture_audio, fixture_embedded,
    fixture_mixed, fixture_logging, fixture_progress, fixture_error, fixture_reconnection,
    fixture_schema, fixture_logging_tool, fixture_tool_change, fixture_prompt_change,
    fixture_header;
extern const struct mcp_tool fixture_sampling, fixture_elicitation, fixture_defaults, fixture_enums,
    fixture_streaming, fixture_missing, fixture_ask_name, fixture_ask_model, fixture_ask_roots,
    fixture_ask_state, fixture_ask_all, fixture_ask_twice, fixture_ask_tampered, fixture_ask_able;
extern const struct mcp_prompt fixture_ask_prompt;
extern const struct mcp_registry fixture_registry;
