/* See event_schemas.h. The data of each stands beside the function that writes it. */

#include "api/jobs/event_schemas.h"

#include "api/core/problem.h"
#include "base/utf8_stream.h"
#include "engine/live/live.h"
#include "engine/oneshot/result.h"

static const struct field start_fields[] = {HAS("id", FIELD_STRING)};
const struct schema start_schema = {SCHEMA("Start", start_fields)};

static const struct field output_fields[] = {
    HAS("stream", FIELD_STRING, WORDS("stdout", "stderr")),
    HAS("data", FIELD_STRING),
};
const struct schema stream_output_schema = {SCHEMA("Output", output_fields)};

static const struct schema stdout_event = {EVENT("StdoutEvent", "stdout", utf8_stream_schema)};
static const struct schema stderr_event = {EVENT("StderrEvent", "stderr", utf8_stream_schema)};
static const struct schema start_event = {EVENT("StartEvent", "start", start_schema)};

static const struct schema program_end = {EVENT("ProgramEndEvent", "end", run_end_schema)};
static const struct schema program_error = {EVENT("ProgramErrorEvent", "error", error_schema)};
const struct schema program_events_schema = {
    "ProgramEvents",
    ONE_OF(&start_event, &stdout_event, &stderr_event, &program_end, &program_error)};

static const struct schema cell_start = {EVENT("CellStartEvent", "start", cell_start_schema)};
static const struct schema cell_main = {EVENT("ResultEvent", "result", cell_main_schema)};
static const struct schema cell_display = {EVENT("DisplayEvent", "display", cell_display_schema)};
static const struct schema cell_clear = {EVENT("ClearEvent", "clear", cell_clear_schema)};
static const struct schema cell_input = {EVENT("InputEvent", "input", cell_input_schema)};
static const struct schema cell_error = {EVENT("ErrorEvent", "error", exception_schema)};
static const struct schema cell_end = {EVENT("CellEndEvent", "end", cell_end_schema)};
static const struct schema cell_failed = {EVENT("FailedEvent", "failed", error_schema)};
#define CELL_EVENTS                                                                                \
    &cell_start, &cell_main, &cell_display, &cell_clear, &cell_input, &cell_error, &cell_end,      \
        &cell_failed
const struct schema cell_events_schema = {"CellEvents",
                                          ONE_OF(&stdout_event, &stderr_event, CELL_EVENTS)};

const struct schema run_events_schema = {
    "RunEvents", ONE_OF(&start_event, &stdout_event, &stderr_event, &cell_main, &cell_display,
                        &cell_error, &cell_end, &cell_failed)};

static const struct schema command_end_event = {
    EVENT("CommandEndEvent", "end", command_view_schema)};
const struct schema command_events_schema = {
    "CommandEvents", ONE_OF(&start_event, &stdout_event, &stderr_event, &command_end_event)};

/* Whatever has a record. */
const struct schema execution_events_schema = {
    "ExecutionEvents", ONE_OF(&start_event, &stdout_event, &stderr_event, &program_end,
                              &program_error, &command_end_event, CELL_EVENTS)};
