/* GET /v1/executions/{id} and its events: what a stream that was cut has missed. */

#include "api/call.h"
#include "api/handlers.h"
#include "api/records.h"
#include "base/clock.h"
#include "base/num.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIVE_NS 10000000000ull

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

struct following {
    struct call *call;
    struct follower f;
    struct timer alive;
    bool lines;  /* NDJSON, not SSE */
    char id[48]; /* of the execution */
};

static void free_following(void *state) {
    struct following *w = state;
    record_unfollow(&w->f);
    loop_timer_stop(w->call->api->o.loop, &w->alive);
    free(w);
}

static void on_event(struct follower *f, uint64_t number, const char *type, const char *json,
                     size_t len) {
    struct following *w = f->arg;
    AUTO_BUF frame = BUF_INIT;
    if (!type) {
        http_end(w->call->req);
        return;
    }
    if (w->lines)
        buf_addf(&frame, "{\"seq\":%llu,\"event\":\"%s\",\"data\":", (unsigned long long)number,
                 type);
    else
        buf_addf(&frame, "id: %llu\nevent: %s\ndata: ", (unsigned long long)number, type);
    buf_add(&frame, json, len);
    buf_adds(&frame, w->lines ? "}\n" : "\n\n");
    http_write(w->call->req, frame.data, frame.len);
    f->paused = http_backlog(w->call->req) > HTTP_HIGH_WATER;
    loop_timer(w->call->api->o.loop, &w->alive, now_ns() + ALIVE_NS);
}

static void on_alive(struct timer *t) {
    struct following *w = t->arg;
    http_write(w->call->req, w->lines ? "\n" : ": alive\n\n", w->lines ? 1 : 9);
    loop_timer(w->call->api->o.loop, t, now_ns() + ALIVE_NS);
}

/* The reader has caught up: on from the last event that it got. */
static void on_drain(struct http_req *r) {
    struct call *c = http_user(r);
    struct following *w = c ? c->state : NULL;
    if (!w || !w->f.paused)
        return;
    struct record *rec = records_find(c->api->records, c->tenant, w->id);
    if (rec)
        record_follow(rec, &w->f);
    else
        http_end(r); /* forgotten meanwhile */
}

void do_execution_events(struct call *c) {
    const struct num_rule rule = {"after", 0, UINT64_MAX / 2};
    const char *after = http_query(c->req, "after"), *accept = http_header(c->req, "Accept");
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
    struct following *w = xcalloc(1, sizeof *w);
    w->call = c;
    w->lines = accept && strstr(accept, "application/x-ndjson");
    w->f = (struct follower){.after = number, .fn = on_event, .arg = w};
    w->alive = (struct timer){.fn = on_alive, .arg = w};
    c->state = w;
    c->state_done = free_following;
    snprintf(w->id, sizeof w->id, "%s", record_id(rec));
    http_on_drain(c->req, on_drain);
    http_add_header(c->req, "Cache-Control", "no-cache");
    http_set_sign(c->req, w->lines ? "\n" : ": alive\n\n");
    http_stream(c->req, 200,
                w->lines ? "application/x-ndjson" : "text/event-stream; charset=utf-8");
    record_follow(rec, &w->f);
}
