/* POST /v1/execute and /v1/execute/stream: contract 1, with api.md's fields behind it. */

#include "api/native/native.h"

#include "api/jobs/events.h"
#include "api/jobs/oneshot.h"
#include "api/jobs/outlet.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIVE_NS 10000000000ull /* between two signs of life on a quiet stream */

struct waiting {
    struct outlet out;
    struct exec *exec; /* borrowed while it runs */
    struct timer alive;
    bool lines; /* a stream as NDJSON, not SSE */
    /* Of one that is answered as a whole. */
    int (*put)(const struct call *c, const struct exec *x, struct rope *to);
};

static struct loop *loop_of(const struct waiting *w) {
    return w->out.who.api->o.loop;
}

static void free_waiting(void *state) {
    struct waiting *w = state;
    loop_timer_stop(loop_of(w), &w->alive);
    outlet_done(&w->out);
    free(w);
}

static void on_gone(struct http_req *r) {
    struct call *c = http_user(r);
    struct waiting *w = c->state;
    if (!w || !w->exec)
        return;
    if (outlet_leave(&w->out)) {
        loop_timer_stop(loop_of(w), &w->alive);
        exec_hold(w->exec, false);
        return;
    }
    struct exec *x = w->exec;
    w->exec = NULL;
    exec_leave(x);
}

/* NULL when the call is answered already. */
static struct waiting *wait_for(struct call *c) {
    struct waiting *w = xcalloc(1, sizeof *w);
    if (!outlet_open(c, &w->out)) {
        free(w);
        return NULL;
    }
    c->state = w;
    c->state_done = free_waiting;
    http_on_gone(c->req, on_gone);
    return w;
}

/* Nobody else frees what has outlived its call. */
static void over(struct waiting *w) {
    if (!w->out.call)
        free_waiting(w);
}

static void on_done(void *arg, struct exec *x, const struct err *why) {
    struct waiting *w = arg;
    AUTO_ROPE json = ROPE_INIT;
    w->exec = NULL;
    if (why) {
        struct problem p = problem_of(why);
        if (p.status == 500)
            log_error("request failed id=%s error=%s", w->out.who.id, log_text(why->text));
        outlet_problem(&w->out, &p);
    } else {
        int status = w->put(w->out.call ? w->out.call : &w->out.who, x, &json);
        outlet_rope(&w->out, status, &json, exec_id(x));
    }
    over(w);
}

void execute_once(struct call *c, const json_t *body, const struct execute_way *way) {
    struct problem p = {0};
    struct waiting *w = wait_for(c);
    if (!w)
        return;
    const struct exec_callbacks cb = {.arg = w,
                                      .flags = way->flags,
                                      .own_bounds = way->own_bounds,
                                      .no_files = way->no_files,
                                      .on_done = on_done};
    w->put = way->put;
    if (exec_start(c, body, &cb, &w->exec, &p) < 0)
        outlet_problem(&w->out, &p);
    else
        http_add_header(c->req, "X-Execution-Id", exec_id(w->exec));
}

static int put_result(const struct call *c, const struct exec *x, struct rope *to) {
    (void)c;
    exec_result(x, to);
    return 200;
}

static void do_execute(struct call *c) {
    execute_once(c, c->body, &(struct execute_way){.put = put_result});
}

/* ---- the stream ---- */

/* `number`: of the event in the execution's record, from which a client may resume; 0: none. */
static void event(struct waiting *w, const char *type, uint64_t number, const struct buf *json) {
    AUTO_BUF frame = BUF_INIT;
    buf_addf(&frame, w->lines ? "{\"event\":\"%s\",\"data\":" : "event: %s\ndata: ", type);
    buf_add(&frame, json->data, json->len);
    if (number)
        buf_addf(&frame, w->lines ? ",\"seq\":%llu" : "\nid: %llu", (unsigned long long)number);
    buf_adds(&frame, w->lines ? "}\n" : "\n\n");
    outlet_write(&w->out, frame.data, frame.len);
    if (w->out.call)
        loop_timer(loop_of(w), &w->alive, now_ns() + ALIVE_NS);
}

static const char *sign_of(const struct waiting *w) {
    return w->lines ? "\n" : ": alive\n\n";
}

static void on_alive(struct timer *t) {
    struct waiting *w = t->arg;
    outlet_sign(&w->out, sign_of(w));
    loop_timer(loop_of(w), t, now_ns() + ALIVE_NS);
}

static void on_output(void *arg, int stream, uint64_t number, const char *data, size_t len) {
    struct waiting *w = arg;
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
    if (w->exec && outlet_is_full(&w->out))
        exec_hold(w->exec, true);
}

static void on_drain(struct http_req *r) {
    struct call *c = http_user(r);
    struct waiting *w = c->state;
    if (w && w->exec)
        exec_hold(w->exec, false);
}

static void end_stream(struct waiting *w) {
    loop_timer_stop(loop_of(w), &w->alive);
    outlet_end(&w->out);
}

static void on_stream_done(void *arg, struct exec *x, const struct err *why) {
    struct waiting *w = arg;
    AUTO_BUF json = BUF_INIT;
    w->exec = NULL;
    if (why) {
        struct jw j = JW_INIT(&json);
        struct problem p = problem_of(why);
        call_refused(&w->out.who, &p);
        jw_object(&j);
        jw_key_str(&j, "message", p.message ? p.message : p.text);
        jw_key_str(&j, "code", p.code);
        jw_key_str(&j, "remediation", p.remediation);
        jw_key_bool(&j, "retryable", p.retryable);
        jw_object_end(&j);
        event(w, "error", 0, &json);
    } else {
        event(w, "result", 0, exec_end(x));
    }
    end_stream(w);
    over(w);
}

static void begin_stream(struct waiting *w, const char *execution) {
    http_add_header(w->out.call->req, "Cache-Control", "no-cache");
    http_add_header(w->out.call->req, "X-Accel-Buffering", "no");
    outlet_stream(&w->out, w->lines ? "application/x-ndjson" : "text/event-stream; charset=utf-8",
                  execution, sign_of(w));
}

static void do_execute_stream(struct call *c) {
    struct problem p = {0};
    struct waiting *w = wait_for(c);
    if (!w)
        return;
    const struct exec_callbacks cb = {.arg = w, .on_output = on_output, .on_done = on_stream_done};
    w->alive = (struct timer){.fn = on_alive, .arg = w};
    w->lines = events_wanted(c) == EVENTS_LINES;
    http_on_drain(c->req, on_drain);
    if (exec_start(c, c->body, &cb, &w->exec, &p) == 0) {
        begin_stream(w, exec_id(w->exec));
        loop_timer(loop_of(w), &w->alive, now_ns() + ALIVE_NS);
        return;
    }
    if (strcmp(p.code, "bad_path") != 0) {
        outlet_problem(&w->out, &p);
        return;
    }
    /* The contract finds these out when the stream has begun. */
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
      200, "the result", JSON_TYPE}, do_execute, .body_max = 64 * MB},
    {{"POST", "/v1/execute/stream", "Run a program and follow its output", "execute",
      &execute_schema, NULL, 200, "events: output, then result or error", STREAM_TYPE},
     do_execute_stream, .body_max = 64 * MB},
};
/* clang-format on */
const struct route_table execute_routes = ROUTE_TABLE(routes);
