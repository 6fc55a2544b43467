/* GET /v1/executions/{id} and its events: what a stream that was cut has missed. */

#include "api/call.h"
#include "api/events.h"
#include "api/handlers.h"
#include "api/records.h"
#include "base/num.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    const struct num_rule rule = {"after", 0, UINT64_MAX / 2};
    const char *after = http_query(c->req, "after");
    const char *last = http_header(c->req, "Last-Event-ID");
    struct record *rec = find(c);
    uint64_t number = 0;
    struct err e;
    if (!rec)
        return;
    if (!after)
        after = last;
    if (after && num_u64(after, &rule, &number, &e) < 0) {
        struct problem p = {.status = 422,
                            .code = "bad_value",
                            .message = e.text,
                            .remediation = "give the number of the last event that you have"};
        call_problem(c, &p);
        return;
    }
    enum events_form form = events_wanted(c);
    events_stream(c, rec, form == EVENTS_LINES ? form : EVENTS_SSE, number, NULL);
}
