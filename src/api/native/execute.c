/* POST /v1/execute and /v1/execute/stream: the Code Interpreter API's, with our own fields behind
 * its own. */

#include "api/native/native.h"

#include "api/jobs/events.h"
#include "api/jobs/job_wait.h"
#include "api/jobs/oneshot_wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stream {
    struct job_wait wait;
    struct timer alive;
    bool lines; /* NDJSON, not SSE */
};

static void do_execute(struct call *c) {
    oneshot_wait(c, c->body, &(struct oneshot_way){0});
}

/* ---- the stream ---- */

static struct loop *loop_of(const struct stream *w) {
    return w->wait.out.who.api->o.loop;
}

static void stream_done(struct job_wait *wait) {
    struct stream *w = (struct stream *)wait;
    loop_timer_stop(loop_of(w), &w->alive);
}

static void stream_alone(struct job_wait *wait) {
    stream_done(wait);
    oneshot_hold(wait->job, false);
}

static void stream_leave(void *job) {
    oneshot_leave(job);
}

static void put_line(const char *type, uint64_t number, const struct buf *json, struct buf *to) {
    struct jw j = JW_INIT(to);
    jw_object(&j);
    jw_key_str(&j, "event", type);
    jw_key(&j, "data");
    jw_raw(&j, json->data, json->len);
    if (number)
        jw_key_uint(&j, "seq", number);
    jw_object_end(&j);
    buf_addc(to, '\n');
}

static void put_sse(const char *type, uint64_t number, const struct buf *json, struct buf *to) {
    buf_addf(to, "event: %s\ndata: ", type);
    buf_add(to, json->data, json->len);
    if (number)
        buf_addf(to, "\nid: %llu", (unsigned long long)number);
    buf_adds(to, "\n\n");
}

/* `number`: of the event in the execution's record, from which a client may resume; 0: none. */
static void event(struct stream *w, const char *type, uint64_t number, const struct buf *json) {
    AUTO_BUF frame = BUF_INIT;
    if (w->lines)
        put_line(type, number, json, &frame);
    else
        put_sse(type, number, json, &frame);
    outlet_write(&w->wait.out, frame.data, frame.len);
    if (w->wait.out.call)
        loop_timer_in_ms(loop_of(w), &w->alive, EVENTS_ALIVE_MS);
}

static void stream_on_alive(struct timer *t) {
    struct stream *w = t->arg;
    outlet_sign(&w->wait.out, events_sign(w->lines));
    loop_timer_in_ms(loop_of(w), t, EVENTS_ALIVE_MS);
}

static void stream_on_output(void *arg, int stream, uint64_t number, const char *data, size_t len) {
    struct stream *w = arg;
    for (size_t at = 0; at < len;) {
        /* Pieces of about 4096 bytes, cut between characters. */
        size_t n = len - at > 4096 ? 4096 : len - at;
        while (at + n < len && ((unsigned char)data[at + n] & 0xc0) == 0x80 && n > 4090)
            n--;
        AUTO_BUF json = BUF_INIT;
        struct jw j = JW_INIT(&json);
        jw_object(&j);
        jw_key_str(&j, "stream", stream == 1 ? "stdout" : "stderr");
        jw_key(&j, "data");
        jw_strn(&j, data + at, n);
        jw_object_end(&j);
        at += n;
        event(w, "output", at == len ? number : 0, &json); /* when the client has all of it */
    }
    if (w->wait.job && outlet_is_full(&w->wait.out))
        oneshot_hold(w->wait.job, true);
}

static void stream_on_drain(struct http_req *r) {
    struct call *c = http_user(r);
    struct stream *w = c->state;
    if (w && w->wait.job)
        oneshot_hold(w->wait.job, false);
}

static void end_stream(struct stream *w) {
    loop_timer_stop(loop_of(w), &w->alive);
    outlet_end(&w->wait.out);
}

static void stream_on_done(void *arg, struct oneshot *x, const struct err *why) {
    struct stream *w = arg;
    AUTO_BUF json = BUF_INIT;
    if (why) {
        struct jw j = JW_INIT(&json);
        struct problem p = problem_of(why);
        call_refused(w->wait.out.who.api, &p);
        jw_object(&j);
        jw_key_str(&j, "message", problem_message(&p));
        jw_key_str(&j, "code", p.code);
        jw_key_str(&j, "remediation", p.remediation);
        jw_key_bool(&j, "retryable", p.retryable);
        jw_object_end(&j);
        event(w, "error", 0, &json);
    } else {
        event(w, "result", 0, oneshot_end(x));
    }
    end_stream(w);
    job_wait_over(&w->wait);
}

static void begin_stream(struct stream *w, const char *execution) {
    http_add_header(w->wait.out.call->req, "Cache-Control", "no-cache");
    http_add_header(w->wait.out.call->req, "X-Accel-Buffering", "no");
    outlet_stream(&w->wait.out,
                  w->lines ? "application/x-ndjson" : "text/event-stream; charset=utf-8", execution,
                  events_sign(w->lines));
}

static void do_execute_stream(struct call *c) {
    struct problem p = {0};
    struct oneshot *x;
    struct stream *w = job_wait_new(c, sizeof *w, stream_leave);
    if (!w)
        return;
    w->wait.alone = stream_alone;
    w->wait.done = stream_done;
    const struct oneshot_options o = {.body = c->body,
                                      .large = c->large,
                                      .arg = w,
                                      .on_output = stream_on_output,
                                      .on_done = stream_on_done};
    w->alive = (struct timer){.fn = stream_on_alive, .arg = w};
    w->lines = events_wanted(c) == EVENTS_LINES;
    http_on_drain(c->req, stream_on_drain);
    if (oneshot_start(&c->who, &o, &x, &p) == 0) {
        w->wait.job = x;
        begin_stream(w, oneshot_id(x));
        loop_timer_in_ms(loop_of(w), &w->alive, EVENTS_ALIVE_MS);
        return;
    }
    if (strcmp(p.code, "bad_path") != 0) {
        outlet_problem(&w->wait.out, &p);
        return;
    }
    /* The Code Interpreter API finds bad paths when the stream has begun already. */
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_str(&j, "message", p.text);
    jw_object_end(&j);
    begin_stream(w, NULL);
    event(w, "error", 0, &json);
    end_stream(w);
}

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"POST", "/v1/execute", "Run a program in a fresh sandbox", "execute", &execute_schema, NULL,
      200, "the result", JSON_TYPE}, do_execute, .body_max = 64 * MB,
     .prepare = oneshot_prepare},
    {{"POST", "/v1/execute/stream", "Run a program and follow its output", "execute",
      &execute_schema, NULL, 200, "events: output, then result or error", STREAM_TYPE},
     do_execute_stream, .body_max = 64 * MB, .prepare = oneshot_prepare},
};
/* clang-format on */
const struct route_table execute_routes = ROUTE_TABLE(routes);
