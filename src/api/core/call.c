/* From a request to its handler: which route, who asks, may they, what does the body say. The order
 * is fixed: host and origin, the route, the key, its limits, the body. */

#include "api/core/call.h"

#include "api/core/access.h"
#include "api/core/body.h"
#include "api/core/quota.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/log.h"
#include "http/fields_read.h"
#include "http/ws.h"
#include "http/ws_handshake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- answers ---- */

void problem_json(const struct problem *p, struct buf *to) {
    struct jw j = JW_INIT(to);
    const char *message = p->message ? p->message : p->text;
    jw_object(&j);
    jw_key(&j, "error");
    jw_object(&j);
    jw_key_str(&j, "code", p->code);
    jw_key_str(&j, "message", message);
    jw_key_str(&j, "remediation", p->remediation);
    jw_key_bool(&j, "retryable", p->retryable);
    jw_object_end(&j);
    jw_key_str(&j, "detail", p->detail ? p->detail : message);
    jw_object_end(&j);
}

void call_json(struct call *c, int status, const struct buf *json) {
    http_reply(c->req, status, "application/json", json->data, json->len);
}

void call_refused(struct api *a, const struct problem *p) {
    if (p->status == 429 || p->status == 503)
        metrics_refused(&a->metrics, p->code);
}

/* NULL: as the native API does. */
static tell_fn *teller(const struct call *c) {
    if (c->route && c->route->tell)
        return c->route->tell;
    return c->dialect ? c->dialect->tell : NULL;
}

void call_problem(struct call *c, const struct problem *p) {
    AUTO_BUF json = BUF_INIT;
    call_refused(c->api, p);
    if (p->retry_after_s) {
        char text[16];
        snprintf(text, sizeof text, "%u", p->retry_after_s);
        http_add_header(c->req, "Retry-After", text);
    }
    if (p->status == 401)
        http_add_header(c->req, "WWW-Authenticate", "Bearer");
    int status = p->status;
    tell_fn *tell = teller(c);
    if (tell)
        status = tell(c, p, &json);
    else
        problem_json(p, &json);
    call_json(c, status, &json);
}

/* One table from the words of docs/errors.md to HTTP. */
static const struct problem known[] = {
    {.status = 422,
     .code = "unknown_profile",
     .remediation = "choose one of GET /v1/profiles, or leave it to auto",
     .retryable = false,
     .retry_after_s = 0},
    {.status = 503,
     .code = "profile_broken",
     .remediation = "choose another profile, or see the server's log",
     .retryable = false,
     .retry_after_s = 60},
    {.status = 422,
     .code = "limit_too_high",
     .remediation = "ask for less; GET /v1/info tells the maxima",
     .retryable = false,
     .retry_after_s = 0},
    {.status = 422,
     .code = "bad_path",
     .remediation = "use a relative path without \"..\" that is not taken",
     .retryable = false,
     .retry_after_s = 0},
    {.status = 413,
     .code = "disk_full",
     .remediation = "send less, or give the sandbox more disk (limits.disk_mb)",
     .retryable = false,
     .retry_after_s = 0},
    {.status = 413,
     .code = "file_too_large",
     .remediation = "send a smaller file, or raise max_file_mb",
     .retryable = false,
     .retry_after_s = 0},
    {.status = 413,
     .code = "code_too_long",
     .remediation = "send the data as a file",
     .retryable = false,
     .retry_after_s = 0},
    {.status = 404,
     .code = "no_file",
     .remediation = "upload it again: files are kept for a time only",
     .retryable = false,
     .retry_after_s = 0},
    {.status = 503,
     .code = "queue_full",
     .remediation = "try again later",
     .retryable = true,
     .retry_after_s = 1},
    {.status = 503,
     .code = "queue_timeout",
     .remediation = "try again later",
     .retryable = true,
     .retry_after_s = 1},
    {.status = 503,
     .code = "memory_budget",
     .remediation = "try again later",
     .retryable = true,
     .retry_after_s = 1},
    {.status = 503,
     .code = "no_descriptors",
     .remediation = "try again later, or send fewer files at a time",
     .retryable = true,
     .retry_after_s = 1},
    {.status = 503,
     .code = "no_sandbox",
     .remediation = "try again later; the server's log says more",
     .retryable = true,
     .retry_after_s = 2},
    {.status = 409,
     .code = "interrupted",
     .remediation = "run it again",
     .retryable = false,
     .retry_after_s = 0},
    {.status = 404,
     .code = "no_such_sandbox",
     .remediation = "GET /v1/sandboxes lists those there"},
    {.status = 410, .code = "sandbox_gone", .remediation = "make a new one"},
    {.status = 404, .code = "no_such_kernel", .remediation = "GET the sandbox's /kernels"},
    {.status = 410, .code = "kernel_gone", .remediation = "use another kernel"},
    {.status = 409, .code = "is_default", .remediation = "restart it, or delete the sandbox"},
    {.status = 409, .code = "name_taken", .remediation = "choose another, or delete that one"},
    {.status = 409, .code = "not_waiting", .remediation = "wait for an input event"},
    {.status = 409, .code = "kernel_busy", .remediation = "try again later", .retryable = true},
    {.status = 409, .code = "kernel_failed", .remediation = "try again, or restart the kernel"},
    {.status = 404, .code = "no_such_command", .remediation = "GET the sandbox's /commands"},
    {.status = 409, .code = "no_terminal", .remediation = "start one with GET …/commands/pty"},
    {.status = 409, .code = "command_over", .remediation = "GET the command for its result"},
    {.status = 409,
     .code = "stdin_closed",
     .remediation = "start it with background: true, and send eof last"},
    {.status = 409, .code = "stdin_full", .remediation = "try again later", .retryable = true},
    {.status = 429,
     .code = "too_many_commands",
     .remediation = "wait for one to end, or kill it",
     .retryable = true,
     .retry_after_s = 1},
    {.status = 501, .code = "cannot_pause", .remediation = "see cloche doctor"},
    {.status = 501, .code = "cannot_limit", .remediation = "leave limits out; see cloche doctor"},
    {.status = 422, .code = "bad_value", .remediation = "see /docs"},
    {.status = 429,
     .code = "too_many_sandboxes",
     .remediation = "delete one that is not needed",
     .retryable = true,
     .retry_after_s = 5},
    {.status = 503,
     .code = "sandbox_lost",
     .remediation = "run it again",
     .retryable = true,
     .retry_after_s = 1},
};

struct problem problem_of(const struct err *e) {
    const char *kind = e->code == EMFILE || e->code == ENFILE ? "no_descriptors" : e->kind;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].code, kind) != 0)
            continue;
        struct problem p = known[i];
        snprintf(p.text, sizeof p.text, "%s", e->text);
        return p;
    }
    struct problem p = {.status = 500,
                        .code = "internal",
                        .message = "Internal Server Error",
                        .remediation = "see the server's log"};
    return p;
}

void call_fail(struct call *c, const struct err *e) {
    struct problem p = problem_of(e);
    if (p.status == 500)
        log_error("request failed id=%s error=%s", c->who.request, log_text(e->text));
    call_problem(c, &p);
}

bool call_is_websocket(struct call *c, const char *instead) {
    int status = 0;
    const char *wrong = ws_wrong(c->req, &status);
    struct problem p = {.status = status, .message = wrong, .remediation = p.text};
    if (!wrong)
        return true;
    p.code = status == 426 ? "no_websocket" : "bad_handshake";
    snprintf(p.text, sizeof p.text, "use a WebSocket client (RFC 6455), or %s", instead);
    call_problem(c, &p);
    return false;
}

/* ---- the body ---- */

static void add_error(struct buf *reply, const struct problem *p) {
    AUTO_BUF all = BUF_INIT;
    buf_add(&all, reply->data, reply->len - 1);
    buf_addf(&all,
             ",\"error\":{\"code\":\"%s\",\"message\":\"%s\",\"remediation\":\"%s\","
             "\"retryable\":false}}",
             p->code, p->message, p->remediation);
    buf_clear(reply);
    buf_add(reply, all.data, all.len);
}

void call_add_error(struct buf *reply, int status) {
    static const struct problem utf8 = {
        .code = "bad_body", .message = "the body is not UTF-8", .remediation = "see /docs"};
    static const struct problem fields = {
        .code = "bad_fields",
        .message = "the body is not what this endpoint takes; detail lists why",
        .remediation = "see /docs"};
    add_error(reply, status == 400 ? &utf8 : &fields);
}

/* Of a body that was not read. */
static void add_body_error(const struct call *c, size_t len, struct buf *reply, int status) {
    static const struct problem type = {
        .code = "bad_fields",
        .message = "the body is not taken for JSON: its Content-Type does not say so",
        .remediation = "send the header Content-Type: application/json"};
    if (len > 0 && !fields_take_type(c->route->doc.body, http_header(c->req, "Content-Type")))
        add_error(reply, &type);
    else
        call_add_error(reply, status);
}

static void refuse_body(struct call *c, size_t len, int status, struct buf *reply) {
    add_body_error(c, len, reply, status);
    if (c->dialect && c->dialect->tell_body)
        c->dialect->tell_body(status, reply);
    call_json(c, status, reply);
}

static void with_large_body(struct call *c) {
    AUTO_BUF reply = BUF_INIT;
    int status = 0;
    if (body_take(c, &c->body, &status, &reply) < 0)
        refuse_body(c, BODY_LARGE, status, &reply);
    else
        c->route->fn(c);
}

static void with_body(struct http_req *r) {
    struct call *c = http_user(r);
    AUTO_BUF reply = BUF_INIT;
    int status = 0;
    const struct buf *b = http_body(r);
    if (b->len > BODY_LARGE)
        body_read(c, with_large_body);
    else if (fields_read(c->route->doc.body, http_header(r, "Content-Type"), b->data, b->len,
                         &c->body, &status, &reply) < 0)
        refuse_body(c, b->len, status, &reply);
    else
        c->route->fn(c);
}

/* A body that is larger than all may be together is not one to try again with. */
static size_t body_most(const struct call *c) {
    size_t all = quota_bodies(c);
    return c->route->body_max < all ? c->route->body_max : all;
}

static void no_room(struct http_req *r) {
    struct call *c = http_user(r);
    char text[140];
    snprintf(text, sizeof text, "the bodies of the requests under way have %u MB already%s",
             c->api->config->http.bodies_mb, c->use ? ", or those of this tenant its half" : "");
    call_problem(c, &(struct problem){.status = 503,
                                      .code = "bodies_full",
                                      .message = text,
                                      .remediation = "try again later, or send less at a time",
                                      .retryable = true,
                                      .retry_after_s = 1});
}

static void call_too_large(struct http_req *r) {
    struct call *c = http_user(r);
    char text[100];
    snprintf(text, sizeof text, "the body has more than %zu bytes", body_most(c));
    call_problem(c, &(struct problem){.status = 413,
                                      .code = "body_too_large",
                                      .message = text,
                                      .remediation = "upload large data with POST /v1/files"});
}

static bool is_query_field(const struct field *f, const char *name) {
    const char *open = strstr(f->name, ".NAME");
    return open ? strncmp(name, f->name, (size_t)(open - f->name) + 1) == 0
                : strcmp(name, f->name) == 0;
}

/* A word that is misspelt would have no effect: a filter that lets all through, for one. */
static bool check_query(struct call *c) {
    const struct schema *q = c->route->doc.query;
    const char *name, *value;
    AUTO_BUF allowed = BUF_INIT;
    struct err e;
    for (unsigned i = 0; q && http_query_at(c->req, i, &name, &value); i++) {
        unsigned k = 0;
        while (k < q->n && !is_query_field(&q->fields[k], name))
            k++;
        if (k < q->n)
            continue;
        for (k = 0; k < q->n; k++)
            buf_addf(&allowed, "%s%s", k ? ", " : "", q->fields[k].name);
        err_user(&e, "bad_value", "the query has \"%.60s\"; it may have: %s", name, allowed.data);
        call_fail(c, &e);
        return false;
    }
    return true;
}

void call_begin(void *arg, struct http_req *r) {
    struct api *a = arg;
    struct call *c = xcalloc(1, sizeof *c);
    struct problem p = {0};
    c->api = c->who.api = a;
    c->req = r;
    c->path_copy = xmalloc(strlen(http_path(r)) + 1);
    id_make("req_", c->who.request, sizeof c->who.request);
    http_set_user(r, c);
    http_add_header(r, "X-Request-Id", c->who.request);
    a->active++;
    a->o.engine->counts.requests++;
    if (!access_check_origin(c, &p)) {
        call_problem(c, &p);
        return;
    }
    if (access_preflight(c))
        return;
    if (!route_find(c))
        return;
    if (!access_check_key(c, &p) || quota_settle(a->quota, c, &p) < 0 ||
        (!c->route->is_free && quota_enter(a->quota, &c->who, &c->counted, &p) < 0)) {
        call_problem(c, &p);
        return;
    }
    if (!check_query(c))
        return;
    if (c->route->body_max)
        http_take_body(r, &(struct http_take){.max = body_most(c),
                                              .whole = with_body,
                                              .too_large = call_too_large,
                                              .no_room = no_room});
    else
        c->route->fn(c);
}

/* One that could be read in two ways: it never became a call. */
static void log_refused(struct api *a, const struct http_req *r, double seconds) {
    char method[40], path[200];
    metrics_request(&a->metrics, "-", "none", http_status(r), seconds);
    log_info("request id=- method=%s path=%s status=%d ms=%.1f in=0 out=%llu key=-",
             log_quote(http_method(r), method, sizeof method),
             log_quote(http_path(r), path, sizeof path), http_status(r), seconds * 1e3,
             (unsigned long long)http_bytes_out(r));
}

void call_finished(void *arg, struct http_req *r) {
    struct api *a = arg;
    struct call *c = http_user(r);
    double seconds = (double)(now_ns() - http_born_ns(r)) / 1e9;
    if (!c) {
        log_refused(a, r, seconds);
        return;
    }
    metrics_request(&a->metrics, c->route ? c->route->doc.method : "-",
                    c->route ? c->route->doc.path : "none", http_status(r), seconds);
    a->metrics.bytes_in += http_bytes_in(r);
    a->metrics.bytes_out += http_bytes_out(r);
    access_log(c, seconds);
    if (c->state_done)
        c->state_done(c->state);
    quota_leave(a->quota, &c->who, &c->counted);
    quota_unsettle(c);
    json_decref(c->body);
    body_leave(c->large);
    free(c->path_copy);
    free(c);
    http_set_user(r, NULL);
    a->active--;
}
