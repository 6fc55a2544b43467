#pragma once
/* What the events of a record are, for the specification: {"event", "data", "seq"}, as a line or as
 * a server-sent event (events.c). For api/ only. */

#include "base/schema.h"

/* Each is one of several: of a program, a program that shows (/v1/run), a cell, a command, and of
 * what GET /v1/executions finds. */
extern const struct schema program_events_schema, run_events_schema, cell_events_schema,
    command_events_schema, execution_events_schema;
/* The data of a `start` event, but of a cell's: {"id"}. */
extern const struct schema start_schema;
/* Of an `output` event of POST /v1/execute/stream, and of its WebSocket. */
extern const struct schema stream_output_schema;
