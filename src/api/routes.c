/* Every endpoint, once. */

#include "api/call.h"
#include "api/exec.h"
#include "api/handlers.h"

#define MB          (1024u * 1024u)
#define JSON_TYPE   "application/json"
#define STREAM_TYPE "text/event-stream"

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
    {{"POST", "/v1/files", "Upload a file", "files", NULL, "multipart/form-data", 201,
      "its id, name and size", JSON_TYPE}, do_upload},
    {{"GET", "/v1/files", "List files", "files", NULL, NULL, 200, "the files", JSON_TYPE}, do_files},
    {{"GET", "/v1/files/{file_id}", "Download a file", "files", NULL, NULL, 200, "its bytes",
      "application/octet-stream"}, do_download},
    {{"DELETE", "/v1/files/{file_id}", "Delete a file", "files", NULL, NULL, 204, "nothing", NULL},
     do_delete},
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
    {{.method = "GET", .path = "/assets/{name}"}, do_asset, .is_open = true, .is_free = true},
};
/* clang-format on */
const size_t routes_n = sizeof routes / sizeof *routes;
