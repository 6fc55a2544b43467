/* GET /v1/executions/{id} and its events: what a stream that was cut has missed. */

#include "api/core/call.h"
#include "api/jobs/events.h"
#include "api/jobs/records.h"
#include "api/native/native.h"

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

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"GET", "/v1/executions/{id}", "Look an execution up", "execute", NULL, NULL, 200,
      "its state, and its result when it is done", JSON_TYPE}, do_execution},
    {{"GET", "/v1/executions/{id}/events", "Resume the stream of an execution", "execute", NULL,
      NULL, 200, "the events after number `after`", STREAM_TYPE, &events_query}, do_execution_events},
};
/* clang-format on */
const struct route_table executions_routes = ROUTE_TABLE(routes);
