#pragma once
/* The messages of a sandbox's WebSocket (sandbox_ws.c), for the specification. For native/ only. */

#include "base/schema.h"

extern const struct schema sandbox_ws_takes, sandbox_ws_sends;
/* Of the messages resize and resume. */
extern const struct schema resize_schema, resume_schema;
