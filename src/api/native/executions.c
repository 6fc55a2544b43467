/* GET /v1/executions/{id} and its events: what a stream that was cut has missed. */

#include "api/core/call.h"
#include "api/jobs/event_schemas.h"
#include "api/jobs/events.h"
#include "api/jobs/records.h"
#include "api/native/native.h"
#include "engine/live/live.h"
#include "engine/oneshot/result.h"

static struct record *executions_find(struct call *c) {
    struct record *rec = records_find(c->api->records, c->who.tenant, c->params[0]);
    if (!rec)
        call_refuse(c, "no_execution", "there is no such execution");
    return rec;
}

static void do_execution(struct call *c) {
    struct record *rec = executions_find(c);
    if (!rec)
        return;
    AUTO_ROPE reply = ROPE_INIT;
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_str(&j, "id", record_id(rec));
    jw_key_str(&j, "state", record_is_done(rec) ? "done" : "running");
    jw_key_real(&j, "created", record_created(rec));
    jw_key(&j, "result");
    if (!record_is_done(rec))
        jw_null(&j);
    rope_add(&reply, &json);
    rope_add_rope(&reply, record_result(rec));
    rope_adds(&reply, "}");
    http_reply_rope(c->req, 200, "application/json", &reply);
}

static void do_execution_events(struct call *c) {
    struct record *rec = executions_find(c);
    enum events_form form = events_wanted(c);
    uint64_t after;
    if (rec && events_after(c, &after))
        events_stream(c, rec, form == EVENTS_LINES ? form : EVENTS_SSE, after,
                      &(struct events_source){0});
}

static const struct schema found_schema = {
    "ExecutionResult",
    ONE_OF(&run_result_schema, &cell_result_schema, &command_result_schema, &error_schema)};
static const struct field execution_fields[] = {
    HAS("id", FIELD_STRING),
    HAS("state", FIELD_STRING, WORDS("running", "done")),
    HAS("created", FIELD_REAL, .help = "unix time"),
    HAS_OR_NULL("result", OBJECT(found_schema), .help = "null while it runs"),
};
static const struct schema execution_schema = {SCHEMA("Execution", execution_fields)};

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"GET", "/v1/executions/{id}", "Look an execution up", "execute", NULL, NULL, 200,
      "its state, and its result when it is done", JSON_TYPE, .gives = &execution_schema,
      .errors = "no_execution"}, do_execution},
    {{"GET", "/v1/executions/{id}/events", "Resume the stream of an execution", "execute", NULL,
      NULL, 200, "the events after number `after`", NULL, &events_query,
      .events = &execution_events_schema, .errors = "no_execution"}, do_execution_events},
};
/* clang-format on */
const struct route_table executions_routes = ROUTE_TABLE(routes);
