/* GET /v1/executions/{id} and its events: what a stream that was cut has missed. */

#include "api/call.h"
#include "api/events.h"
#include "api/handlers.h"
#include "api/records.h"

static struct record *find(struct call *c) {
    struct record *rec = records_find(c->api->records, c->tenant, c->params[0]);
    if (!rec)
        call_problem(c, &(struct problem){.status = 404,
                                          .code = "no_execution",
                                          .message = "there is no such execution",
                                          .remediation = "executions are remembered for a few "
                                                         "minutes only"});
    return rec;
}

void do_execution(struct call *c) {
    struct record *rec = find(c);
    if (!rec)
        return;
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_str(&j, "id", record_id(rec));
    jw_key_str(&j, "state", record_is_done(rec) ? "done" : "running");
    jw_key_real(&j, "created", record_created(rec));
    jw_key(&j, "result");
    if (record_is_done(rec))
        jw_raw(&j, record_result(rec)->data, record_result(rec)->len);
    else
        jw_null(&j);
    jw_object_end(&j);
    call_json(c, 200, &json);
}

void do_execution_events(struct call *c) {
    struct record *rec = find(c);
    enum events_form form = events_wanted(c);
    uint64_t after;
    if (rec && events_after(c, &after))
        events_stream(c, rec, form == EVENTS_LINES ? form : EVENTS_SSE, after,
                      &(struct events_source){0});
}
