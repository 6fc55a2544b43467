/* See sandbox_ws_schema.h. */

#include "api/native/sandbox_ws_schema.h"

#include "api/core/problem.h"
#include "api/jobs/cell_job.h"
#include "api/jobs/event_schemas.h"
#include "api/native/kernels.h"
#include "base/utf8_stream.h"
#include "engine/live/live.h"
#include "engine/oneshot/result.h"

#define REF MAY_HAVE("ref", FIELD_STRING, .help = "the client's name for what it asks")

/* ---- of the client ---- */

static const struct field resize_fields[] = {
    {.name = "command_id", .type = FIELD_STRING, .flags = FIELD_REQUIRED},
    {.name = "rows",
     .type = FIELD_INT,
     .flags = FIELD_REQUIRED | FIELD_MIN | FIELD_MAX,
     .min = 1,
     .max = 1000},
    {.name = "cols",
     .type = FIELD_INT,
     .flags = FIELD_REQUIRED | FIELD_MIN | FIELD_MAX,
     .min = 1,
     .max = 1000},
};
const struct schema resize_schema = {SCHEMA("ResizeMessage", resize_fields)};

static const struct field resume_fields[] = {
    {.name = "execution_id", .type = FIELD_STRING, .flags = FIELD_REQUIRED},
    {.name = "after",
     .type = FIELD_INT,
     .flags = FIELD_MIN,
     .min = 0,
     .fallback = "0",
     .help = "the number of the last event that you have"},
};
const struct schema resume_schema = {SCHEMA("ResumeMessage", resume_fields)};

#define ASKS(symbol, name_, word, of)                                                              \
    static const struct schema symbol = {.name = (name_),                                          \
                                         .fields =                                                 \
                                             (const struct field[]){MESSAGE_TYPE(word), REF},      \
                                         .n = 2,                                                   \
                                         .with = &(of)}
ASKS(asks_execute, "WsExecute", "execute", cell_schema);
ASKS(asks_stdin, "WsStdin", "stdin", stdin_schema);
ASKS(asks_interrupt, "WsInterrupt", "interrupt", which_kernel_schema);
ASKS(asks_resize, "WsResize", "resize", resize_schema);
ASKS(asks_resume, "WsResume", "resume", resume_schema);

const struct schema sandbox_ws_takes = {
    "SandboxMessage",
    ONE_OF(&asks_execute, &asks_stdin, &asks_interrupt, &asks_resize, &asks_resume)};

/* ---- of the server ---- */

#define SAYS(symbol, name_, word, of)                                                              \
    static const struct schema symbol = {                                                          \
        .name = (name_),                                                                           \
        .fields = (const struct field[]){MESSAGE_TYPE(word), MAY_HAVE("seq", FIELD_INT),           \
                                         MAY_HAVE("execution_id", FIELD_STRING), REF},             \
        .n = 4,                                                                                    \
        .with = (of)}
SAYS(says_accepted, "WsAccepted", "accepted", NULL);
SAYS(says_resized, "WsResized", "resized", NULL);
SAYS(says_interrupted, "WsInterrupted", "interrupted", &interrupted_schema);
SAYS(says_failed, "WsFailed", "failed", &error_schema);
SAYS(says_stdout, "WsStdout", "stdout", &utf8_stream_schema);
SAYS(says_stderr, "WsStderr", "stderr", &utf8_stream_schema);
SAYS(says_start, "WsCellStart", "start", &cell_start_schema);
SAYS(says_main, "WsResult", "result", &cell_main_schema);
SAYS(says_display, "WsDisplay", "display", &cell_display_schema);
SAYS(says_clear, "WsClear", "clear", &cell_clear_schema);
SAYS(says_input, "WsInput", "input", &cell_input_schema);
SAYS(says_error, "WsError", "error", &exception_schema);
SAYS(says_end, "WsCellEnd", "end", &cell_end_schema);
/* A client may resume a program, too, or a command. */
SAYS(says_program_start, "WsProgramStart", "start", &start_schema);
SAYS(says_program_error, "WsProgramError", "error", &error_schema);
SAYS(says_program_end, "WsProgramEnd", "end", &run_end_schema);
SAYS(says_command_end, "WsCommandEnd", "end", &command_view_schema);

const struct schema sandbox_ws_sends = {
    "SandboxEvent", ONE_OF(&says_accepted, &says_resized, &says_interrupted, &says_failed,
                           &says_stdout, &says_stderr, &says_start, &says_main, &says_display,
                           &says_clear, &says_input, &says_error, &says_end, &says_program_start,
                           &says_program_error, &says_program_end, &says_command_end)};
