/* Every endpoint, once. */

#include "api/call.h"
#include "api/exec.h"
#include "api/handlers.h"
#include "api/ipybox.h"
#include "api/runtime.h"

#include <string.h>

#define MB          (1024u * 1024u)
#define JSON_TYPE   "application/json"
#define STREAM_TYPE "text/event-stream"
#define IN_RUNTIME  .dialect = RUNTIME, .tell = runtime_tell
#define IN_IPYBOX   .dialect = IPYBOX, .tell = ipybox_tell

/* clang-format off */
const struct route routes[] = {
    {{"POST", "/v1/execute", "Run a program in a fresh sandbox", "execute", &execute_schema, NULL,
      200, "the result", JSON_TYPE}, do_execute, .body_max = 64 * MB},
    {{"POST", "/v1/execute/stream", "Run a program and follow its output", "execute",
      &execute_schema, NULL, 200, "events: output, then result or error", STREAM_TYPE},
     do_execute_stream, .body_max = 64 * MB},
    {{"GET", "/v1/execute/stream", "Run a program and talk to it, over a WebSocket: the first message "
      "is the body of the POST, then events as JSON; stdin, stdin_end, interrupt, signal to the "
      "program", "execute", NULL, NULL, 101, "a WebSocket", NULL}, do_execute_ws},
    {{"POST", "/v1/execute/batch", "Run many programs", "execute", &batch_schema, NULL, 200,
      "one result a line, in order of completion, each with its index", "application/x-ndjson"},
     do_batch, .body_max = 64 * MB},
    {{"GET", "/v1/executions/{id}", "Look an execution up", "execute", NULL, NULL, 200,
      "its state, and its result when it is done", JSON_TYPE}, do_execution},
    {{"GET", "/v1/executions/{id}/events", "Resume the stream of an execution", "execute", NULL,
      NULL, 200, "the events after number `after`", STREAM_TYPE}, do_execution_events},
    {{"POST", "/v1/sandboxes", "Make a sandbox that stays", "sandboxes", &sandbox_schema, NULL, 201,
      "the sandbox", JSON_TYPE}, do_sandbox_new, .body_max = 64 * MB},
    {{"GET", "/v1/sandboxes", "List sandboxes, by metadata.NAME=VALUE", "sandboxes", NULL, NULL, 200,
      "a page of sandboxes", JSON_TYPE}, do_sandboxes},
    {{"GET", "/v1/sandboxes/{id}", "Look at a sandbox", "sandboxes", NULL, NULL, 200, "the sandbox",
      JSON_TYPE}, do_sandbox},
    {{"PATCH", "/v1/sandboxes/{id}", "Change its life time, limits, metadata", "sandboxes",
      &sandbox_change_schema, NULL, 200, "the sandbox", JSON_TYPE}, do_sandbox_change,
     .body_max = MB},
    {{"DELETE", "/v1/sandboxes/{id}", "End a sandbox", "sandboxes", NULL, NULL, 204, "nothing", NULL},
     do_sandbox_delete},
    {{"POST", "/v1/sandboxes/{id}/execute", "Run a cell in a kernel", "sandboxes", &cell_schema, NULL,
      200, "the result, or a stream of events as the Accept header asks", JSON_TYPE}, do_cell,
     .body_max = 64 * MB},
    {{"GET", "/v1/sandboxes/{id}/ws", "Use its kernels over a WebSocket: messages of type execute, "
      "stdin, interrupt, resume to the server, events as JSON to the client", "sandboxes", NULL, NULL,
      101, "a WebSocket", NULL}, do_sandbox_ws},
    {{"POST", "/v1/sandboxes/{id}/interrupt", "KeyboardInterrupt in a kernel", "sandboxes",
      &which_kernel_schema, NULL, 200, "whether something ran", JSON_TYPE}, do_interrupt,
     .body_max = MB},
    {{"POST", "/v1/sandboxes/{id}/restart", "A fresh process for a kernel", "sandboxes",
      &which_kernel_schema, NULL, 200, "the kernel", JSON_TYPE}, do_restart, .body_max = MB},
    {{"POST", "/v1/sandboxes/{id}/pause", "Freeze all of it", "sandboxes", NULL, NULL, 200,
      "the sandbox", JSON_TYPE}, do_sandbox_pause},
    {{"POST", "/v1/sandboxes/{id}/resume", "Go on", "sandboxes", NULL, NULL, 200, "the sandbox",
      JSON_TYPE}, do_sandbox_resume},
    {{"POST", "/v1/sandboxes/{id}/stdin", "Answer an input() that waits", "sandboxes", &stdin_schema,
      NULL, 200, "nothing", JSON_TYPE}, do_stdin, .body_max = 16 * MB},
    {{"POST", "/v1/sandboxes/{id}/kernels", "One more kernel", "sandboxes", &kernel_schema, NULL, 201,
      "the kernel", JSON_TYPE}, do_kernel_new, .body_max = MB},
    {{"GET", "/v1/sandboxes/{id}/kernels", "List kernels", "sandboxes", NULL, NULL, 200, "the kernels",
      JSON_TYPE}, do_kernels},
    {{"GET", "/v1/sandboxes/{id}/kernels/{kernel_id}", "Look at a kernel", "sandboxes", NULL, NULL,
      200, "the kernel", JSON_TYPE}, do_kernel},
    {{"DELETE", "/v1/sandboxes/{id}/kernels/{kernel_id}", "End a kernel", "sandboxes", NULL, NULL,
      204, "nothing", NULL}, do_kernel_delete},
    {{"POST", "/v1/sandboxes/{id}/complete", "Complete code", "sandboxes", &complete_schema, NULL,
      200, "matches, and what they replace", JSON_TYPE}, do_complete, .body_max = MB},
    {{"POST", "/v1/sandboxes/{id}/inspect", "What a name is", "sandboxes", &inspect_schema, NULL, 200,
      "its documentation", JSON_TYPE}, do_inspect, .body_max = MB},
    {{"GET", "/v1/sandboxes/{id}/variables", "The variables of a kernel", "sandboxes", NULL, NULL,
      200, "names, types, sizes, short reprs", JSON_TYPE}, do_variables},
    {{"POST", "/v1/sandboxes/{id}/commands", "Run a command", "commands", &command_schema, NULL, 200,
      "the command with its output, or a stream of events as the Accept header asks; 202 when it is "
      "in the background", JSON_TYPE}, do_command_new, .body_max = 16 * MB},
    {{"GET", "/v1/sandboxes/{id}/commands", "List commands", "commands", NULL, NULL, 200,
      "the commands", JSON_TYPE}, do_commands},
    {{"GET", "/v1/sandboxes/{id}/commands/pty", "A command at a terminal, over a WebSocket: cmd, cwd, "
      "rows, cols of the query; keys as binary messages", "commands", NULL, NULL, 101, "a WebSocket",
      NULL}, do_command_pty},
    {{"GET", "/v1/sandboxes/{id}/commands/{command_id}", "Look at a command", "commands", NULL, NULL,
      200, "the command with its output so far", JSON_TYPE}, do_command},
    {{"DELETE", "/v1/sandboxes/{id}/commands/{command_id}", "Kill and forget a command", "commands",
      NULL, NULL, 204, "nothing", NULL}, do_command_delete},
    {{"GET", "/v1/sandboxes/{id}/commands/{command_id}/events", "Follow a command", "commands", NULL,
      NULL, 200, "the events after number `after`", STREAM_TYPE}, do_command_events},
    {{"POST", "/v1/sandboxes/{id}/commands/{command_id}/signal", "Send a signal", "commands",
      &signal_schema, NULL, 200, "the command", JSON_TYPE}, do_command_signal, .body_max = MB},
    {{"POST", "/v1/sandboxes/{id}/commands/{command_id}/stdin", "Feed a background command",
      "commands", &feed_schema, NULL, 200, "the command", JSON_TYPE}, do_command_stdin,
     .body_max = 2 * MB},
    {{"GET", "/v1/sandboxes/{id}/commands/{command_id}/pty", "Sit down at a command's terminal, over "
      "a WebSocket", "commands", NULL, NULL, 101, "a WebSocket", NULL}, do_command_attach},
    {{"POST", "/v1/sessions", "A session: a place to run bash in", "sessions", &session_schema, NULL,
      201, "its id, and until when it lives", JSON_TYPE}, do_session_new, .body_max = 64 * MB,
     .dialect = "code-interpreter"},
    {{"DELETE", "/v1/sessions/{session_id}", "End a session", "sessions", NULL, NULL, 204, "nothing",
      NULL}, do_session_delete, .dialect = "code-interpreter"},
    {{"POST", "/v1/sessions/{session_id}/bash", "Run bash in a session", "sessions", &bash_schema,
      NULL, 200, "its output", JSON_TYPE}, do_session_bash, .body_max = 16 * MB,
     .dialect = "code-interpreter"},
    {{"POST", "/v1/files", "Upload a file", "files", NULL, "multipart/form-data", 201,
      "its id, name and size", JSON_TYPE}, do_upload},
    {{"GET", "/v1/files", "List files", "files", NULL, NULL, 200, "the files", JSON_TYPE}, do_files},
    {{"GET", "/v1/files/{file_id}", "Download a file", "files", NULL, NULL, 200, "its bytes",
      "application/octet-stream"}, do_download},
    {{"DELETE", "/v1/files/{file_id}", "Delete a file", "files", NULL, NULL, 204, "nothing", NULL},
     do_delete},
    {{"GET", "/v1/sandboxes/{id}/files/{path...}", "Download a file of a sandbox, or list a directory "
      "(recursive, limit, after)", "sandboxes", NULL, NULL, 200, "its bytes, or its entries",
      "application/octet-stream"}, do_sandbox_file},
    {{"PUT", "/v1/sandboxes/{id}/files/{path...}", "Upload a file to a sandbox (mode)", "sandboxes",
      NULL, "application/octet-stream", 201, "its path and size", JSON_TYPE}, do_sandbox_file_put},
    {{"DELETE", "/v1/sandboxes/{id}/files/{path...}", "Delete a file or directory of a sandbox "
      "(recursive)", "sandboxes", NULL, NULL, 204, "nothing", NULL}, do_sandbox_file_delete},
    {{"POST", "/v1/sandboxes/{id}/files/{path...}", "Make a directory, move or chmod in a sandbox",
      "sandboxes", &sandbox_file_schema, NULL, 200, "the entry", JSON_TYPE}, do_sandbox_file_post,
     .body_max = 64 * 1024},
    {{"GET", "/v1/sandboxes/{id}/archive/{path...}", "Download a directory of a sandbox as tar.gz",
      "sandboxes", NULL, NULL, 200, "a tar.gz", "application/gzip"}, do_sandbox_archive},
    {{"PUT", "/v1/sandboxes/{id}/archive/{path...}", "Unpack a tar.gz into a directory of a sandbox",
      "sandboxes", NULL, "application/gzip", 200, "how much it was", JSON_TYPE},
     do_sandbox_archive_put},
    {{"GET", "/v1/info", "Version, limits, state", "service", NULL, NULL, 200, "about this server",
      JSON_TYPE}, do_info},
    {{"GET", "/v1/profiles", "What is preloaded", "service", NULL, NULL, 200, "the profiles",
      JSON_TYPE}, do_profiles},
    {{"GET", "/health", "Whether programs can run", "service", NULL, NULL, 200, "ok or error",
      JSON_TYPE}, do_health, .is_open = true, .is_free = true},
    {{"GET", "/metrics", "Counters for Prometheus", "service", NULL, NULL, 200, "text",
      "text/plain"}, do_metrics, .is_free = true},
    {{"GET", "/openapi.json", "This specification", "service", NULL, NULL, 200, "OpenAPI 3.1",
      JSON_TYPE}, do_openapi, .is_open = true, .is_free = true},
    {{"GET", "/docs", "The specification for people", "service", NULL, NULL, 200, "a page",
      "text/html"}, do_asset, .is_open = true, .is_free = true},
    {{"GET", "/", "What this is, or a page to try it", "service", NULL, NULL, 200, "a page or JSON",
      JSON_TYPE}, do_root, .is_open = true, .is_free = true},
    {{"POST", "/run", "PyRunner: run a program", "pyrunner", &pyrunner_schema, NULL, 200,
      "status, stdout, stderr, execution_time, memory_used, error", JSON_TYPE}, do_pyrunner_run,
     .body_max = 64 * MB, .dialect = "pyrunner"},
    {{"GET", "/status", "ipybox: whether the server is there", "ipybox", NULL, NULL, 200, "ok",
      JSON_TYPE}, do_ipybox_status, .is_open = true, .is_free = true, .dialect = IPYBOX},
    {{.method = "GET", .path = "/status/"}, do_ipybox_status, .is_open = true, .is_free = true,
     .dialect = IPYBOX},
    {{"POST", "/files/{path...}", "ipybox: upload a file to the default sandbox, or to that of the "
      "header X-Cloche-Sandbox", "ipybox", NULL, "application/octet-stream", 200, "a message",
      JSON_TYPE}, do_ipybox_upload, IN_IPYBOX},
    {{"GET", "/files/{path...}", "ipybox: download a file", "ipybox", NULL, NULL, 200, "its bytes",
      "application/octet-stream"}, do_ipybox_download, IN_IPYBOX},
    {{"DELETE", "/files/{path...}", "ipybox: delete a file", "ipybox", NULL, NULL, 204, "nothing",
      NULL}, do_ipybox_delete, IN_IPYBOX},
    {{"POST", "/directories/{path...}", "ipybox: unpack a tar.gz into a directory", "ipybox", NULL,
      "application/x-gzip", 200, "a message", JSON_TYPE}, do_ipybox_unpack, IN_IPYBOX},
    {{"GET", "/directories/{path...}", "ipybox: download a directory", "ipybox", NULL, NULL, 200,
      "a tar.gz of its files", "application/x-gzip"}, do_ipybox_archive, IN_IPYBOX},
    {{"GET", "/modules", "ipybox: sources of the modules q=NAME&q=…", "ipybox", NULL, NULL, 200,
      "names and sources", JSON_TYPE}, do_ipybox_modules, IN_IPYBOX},
    {{.method = "GET", .path = "/redoc"}, do_redoc, .is_open = true, .is_free = true,
     .dialect = "pyrunner"},
    {{"GET", "/workspace/se/healthy", "Sandbox Runtime: whether it is there", "sandbox-runtime", NULL,
      NULL, 200, "status", JSON_TYPE}, do_runtime_healthy, .is_open = true, .is_free = true, IN_RUNTIME},
    {{"POST", "/workspace/se/session/{session_id}", "Make a session", "sandbox-runtime",
      &runtime_session_schema, NULL, 200, "its id", JSON_TYPE}, do_runtime_session_new,
     .body_max = MB, IN_RUNTIME},
    {{"DELETE", "/workspace/se/session/{session_id}", "End a session", "sandbox-runtime", NULL, NULL,
      200, "status; also when there was none", JSON_TYPE}, do_runtime_session_delete, IN_RUNTIME},
    {{"GET", "/workspace/se/status/{session_id}", "Look at a session", "sandbox-runtime", NULL, NULL,
      200, "whether it exists, and its files", JSON_TYPE}, do_runtime_status, IN_RUNTIME},
    {{"GET", "/workspace/se/workspaces", "List sessions", "sandbox-runtime", NULL, NULL, 200,
      "the sessions", JSON_TYPE}, do_runtime_workspaces, IN_RUNTIME},
    {{"POST", "/workspace/se/cleanup-all", "End all sessions", "sandbox-runtime",
      &runtime_cleanup_schema, NULL, 200, "how many", JSON_TYPE}, do_runtime_cleanup, .body_max = MB,
     IN_RUNTIME},
    {{"POST", "/workspace/se/upload/{session_id}", "Upload a file to a session (filename)",
      "sandbox-runtime", NULL, "multipart/form-data", 200, "its name and size", JSON_TYPE},
     do_runtime_upload, IN_RUNTIME},
    {{"POST", "/workspace/se/create/{session_id}", "Make a file of text in a session",
      "sandbox-runtime", &runtime_create_schema, NULL, 200, "its name and size", JSON_TYPE},
     do_runtime_create, .body_max = 64 * MB, IN_RUNTIME},
    {{"GET", "/workspace/se/download/{session_id}/{path...}", "Download a file of a session",
      "sandbox-runtime", NULL, NULL, 200, "its bytes", "application/octet-stream"},
     do_runtime_download, IN_RUNTIME},
    {{"GET", "/workspace/se/files/preview/{session_id}/{path...}", "Show a file of a session",
      "sandbox-runtime", NULL, NULL, 200, "its bytes, with the type of their kind",
      "application/octet-stream"}, do_runtime_preview, IN_RUNTIME},
    {{"GET", "/workspace/se/files/{session_id}/{path...}", "List files of a session (recursive)",
      "sandbox-runtime", NULL, NULL, 200, "the files", JSON_TYPE}, do_runtime_files, IN_RUNTIME},
    {{"GET", "/workspace/se/readfile/{session_id}/{path...}", "Read a piece of a file (offset, "
      "buffer_size)", "sandbox-runtime", NULL, NULL, 200, "text, or base64", JSON_TYPE},
     do_runtime_readfile, IN_RUNTIME},
    {{"POST", "/workspace/se/execute/{session_id}", "Run a command in a session", "sandbox-runtime",
      &runtime_execute_schema, NULL, 200, "its output and exit code", JSON_TYPE},
     do_runtime_execute, .body_max = MB, IN_RUNTIME},
    {{"POST", "/workspace/se/execute_code/{session_id}", "Run a script in a session",
      "sandbox-runtime", &runtime_code_schema, NULL, 200, "its output and exit code", JSON_TYPE},
     do_runtime_execute_code, .body_max = 64 * MB, IN_RUNTIME},
    {{"POST", "/workspace/se/v2/execute_code", "Call a handler in a fresh sandbox",
      "sandbox-runtime", &runtime_lambda_schema, NULL, 200, "its output and what it returned",
      JSON_TYPE}, do_runtime_lambda, .body_max = 64 * MB, .dialect = RUNTIME,
     .tell = runtime_tell_lambda},
    {{"POST", "/workspace/se/download_from_efast/{session_id}", "Download files from e-fast to a "
      "session", "sandbox-runtime", &runtime_efast_schema, NULL, 200, "what became of each",
      JSON_TYPE}, do_runtime_efast, .body_max = MB, IN_RUNTIME},
    {{.method = "GET", .path = "/workspace/se/files/{session_id}"}, do_runtime_files_there, IN_RUNTIME},
    {{.method = "GET", .path = "/api.json"}, do_openapi, .is_open = true, .is_free = true,
     .dialect = RUNTIME},
    {{.method = "GET", .path = "/assets/{name}"}, do_asset, .is_open = true, .is_free = true},
};
/* clang-format on */
const size_t routes_n = sizeof routes / sizeof *routes;

unsigned dialect_rank(const struct api *a, const char *dialect) {
    const char *at = a->config->http.dialects;
    for (unsigned rank = 1; *at; rank++) {
        size_t n = strcspn(at, ",");
        if (n == strlen(dialect) && strncmp(at, dialect, n) == 0)
            return rank;
        at += n + (at[n] == ',');
    }
    return 0;
}

bool route_is_there(const struct api *a, const struct route *r) {
    return !r->dialect || dialect_rank(a, r->dialect) > 0;
}
