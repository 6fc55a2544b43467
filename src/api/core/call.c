/* From a request to its handler: which route, who asks, may they, what does the body say. The order
 * is fixed: host and origin, the route, the key, its limits, whose the port is, the body. */

#include "api/core/call.h"

#include "api/core/access.h"
#include "api/core/body.h"
#include "api/core/doors.h"
#include "api/core/quota.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/log.h"
#include "http/field_fault.h"
#include "http/fields_read.h"
#include "http/json_text.h"
#include "http/ws.h"
#include "http/ws_handshake.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- answers ---- */

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
        http_add_header(c->req, "WWW-Authenticate",
                        strcmp(p->code, "bad_key") == 0
                            ? "Bearer realm=\"cloche\", error=\"invalid_token\""
                            : "Bearer realm=\"cloche\"");
    int status = p->status;
    tell_fn *tell = teller(c);
    if (tell)
        status = tell(c, p, &json);
    else
        problem_json(p, &json);
    call_json(c, status, &json);
}

void call_refuse(struct call *c, const char *code, const char *fmt, ...) {
    struct problem p;
    va_list args;
    va_start(args, fmt);
    problem_vset(&p, code, fmt, args);
    va_end(args);
    call_problem(c, &p);
}

void call_bad_value(struct call *c, const char *remediation, const char *fmt, ...) {
    struct problem p;
    va_list args;
    va_start(args, fmt);
    problem_vset(&p, "bad_value", fmt, args);
    va_end(args);
    p.remediation = remediation;
    call_problem(c, &p);
}

void call_fail(struct call *c, const struct err *e) {
    struct problem p = problem_of(e);
    if (p.status == 500)
        log_error("request failed id=%s error=%s", c->who.request, log_text(e->text));
    call_problem(c, &p);
}

const char *call_query(const struct call *c, const char *name) {
    const struct schema *q = c->route->doc.query;
    for (unsigned i = 0; q && i < q->n; i++)
        if (strcmp(q->fields[i].name, name) == 0)
            return http_query(c->req, name);
    log_error("query parameter without a table path=%s name=%s", c->route->doc.path, name);
    return NULL;
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

void call_add_error(struct buf *reply, int status) {
    struct problem p;
    if (status == 400)
        problem_set(&p, "bad_body", "the body is not UTF-8");
    else
        problem_set(&p, "bad_fields", "the body is not what this endpoint takes; detail lists why");
    problem_add(&p, reply);
}

void call_fault(struct call *c, const char *where, const char *name, const struct field_fault *f) {
    const struct field_loc whole = {.name = where}, at = {.up = &whole, .name = name};
    AUTO_BUF json = BUF_INIT;
    struct jw j = fields_detail_begin(&json);
    field_fault_write(&j, &at, f);
    fields_detail_end(&j);
    call_add_error(&json, 422);
    call_json(c, 422, &json);
}

/* The error when a body could not be read. */
static void add_body_error(const struct call *c, size_t len, struct buf *reply, int status) {
    struct problem p;
    if (len == 0 || fields_take_type(c->route->doc.body, http_header(c->req, "Content-Type"))) {
        call_add_error(reply, status);
        return;
    }
    problem_set(&p, "bad_fields",
                "the body is not taken for JSON: its Content-Type does not say so");
    p.remediation = "send the header Content-Type: application/json";
    problem_add(&p, reply);
}

static void refuse_body(struct call *c, size_t len, int status, struct buf *reply) {
    add_body_error(c, len, reply, status);
    if (c->dialect && c->dialect->tell_body)
        c->dialect->tell_body(status, reply);
    call_json(c, status, reply);
}

/* Trying again is of no use to a body that is larger than all may be together. */
static size_t body_most(const struct call *c) {
    size_t all = quota_bodies(c);
    return c->route->body_max < all ? c->route->body_max : all;
}

static void no_room(struct http_req *r) {
    struct call *c = http_user(r);
    char text[140];
    snprintf(text, sizeof text, "the bodies of the requests under way have %u MB already%s",
             c->api->config->http.bodies_mb, c->use ? ", or those of this tenant its half" : "");
    call_refuse(c, "bodies_full", "%s", text);
}

static void no_room_for_tree(struct call *c, size_t bytes) {
    if (bytes <= quota_bodies(c))
        no_room(c->req);
    else
        call_refuse(c, "body_too_large", "the body has too many values: %zu MB when it is read",
                    bytes >> 20);
}

static void with_large_body(struct call *c) {
    AUTO_BUF reply = BUF_INIT;
    int status = 0;
    if (http_is_gone(
            c->req)) /* the client left while the body was read; the call ends in this turn */
        return;
    if (body_lacks(c->large)) {
        no_room_for_tree(c, body_lacks(c->large));
        return;
    }
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
    if (b->len > BODY_LARGE || json_text_values(b->data, b->len, BODY_VALUES) > BODY_VALUES)
        body_read(c, with_large_body);
    else if (fields_read(c->route->doc.body, http_header(r, "Content-Type"), b->data, b->len,
                         &c->body, &status, &reply) < 0)
        refuse_body(c, b->len, status, &reply);
    else
        c->route->fn(c);
}

static void call_too_large(struct http_req *r) {
    struct call *c = http_user(r);
    char text[100];
    snprintf(text, sizeof text, "the body has more than %zu bytes", body_most(c));
    call_refuse(c, "body_too_large", "%s", text);
}

static bool is_query_field(const struct field *f, const char *name) {
    const char *open = strstr(f->name, ".NAME");
    return open ? strncmp(name, f->name, (size_t)(open - f->name) + 1) == 0
                : strcmp(name, f->name) == 0;
}

static bool refuse_parameter(struct call *c, const struct schema *q, const char *name) {
    AUTO_BUF allowed = BUF_INIT;
    struct err e;
    for (unsigned k = 0; k < q->n; k++)
        buf_addf(&allowed, "%s%s", k ? ", " : "", q->fields[k].name);
    err_user(&e, "bad_value", "the query has \"%.60s\"; it may have: %s", name, allowed.data);
    call_fail(c, &e);
    return false;
}

/* A misspelt parameter would have no effect; a filter, for one, would let everything through. Of
 * one that comes twice, two readers may take different values. */
static bool check_query(struct call *c) {
    const struct schema *q = c->route->doc.query;
    const char *name, *value;
    uint64_t seen = 0;
    struct err e;
    for (unsigned i = 0; q && !q->open && http_query_at(c->req, i, &name, &value); i++) {
        unsigned k = 0;
        while (k < q->n && !is_query_field(&q->fields[k], name))
            k++;
        if (k == q->n)
            return refuse_parameter(c, q, name);
        uint64_t bit = strcmp(q->fields[k].name, name) == 0 && k < 64 ? 1ull << k : 0;
        if (seen & bit) {
            err_user(&e, "bad_value", "the query has %s more than once", q->fields[k].name);
            call_fail(c, &e);
            return false;
        }
        seen |= bit;
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
    if (call_at_door(c) && !c->route->is_open && !call_door_live(c))
        return;
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

/* A request that could be read in two ways: it never became a call. */
static void log_refused(struct api *a, const struct http_req *r, double seconds) {
    char method[40], path[200];
    metrics_request(&a->metrics, "-", "none", http_status(r), seconds);
    log_info("request id=- method=%s path=%s status=%d ms=%.1f in=0 out=%llu key=-",
             log_quote(http_method(r), method, sizeof method),
             log_quote(http_path(r), path, sizeof path), http_status(r), seconds * 1e3,
             (unsigned long long)http_bytes_out(r));
}

/* SECURITY: of answers that are not ours only the kind is counted: there are few of those. */
static void count_request(const struct call *c, double seconds) {
    struct metrics *m = &c->api->metrics;
    int status = http_status(c->req);
    if (c->route && c->route->doc.passes)
        status -= status % 100;
    metrics_request(m, c->route ? c->route->doc.method : "-",
                    c->route ? c->route->doc.path : "none", status, seconds);
    if (c->route && c->route->doc.passes) {
        m->passed++;
        m->passed_in += http_bytes_in(c->req);
        m->passed_out += http_bytes_out(c->req);
    }
}

void call_finished(void *arg, struct http_req *r) {
    struct api *a = arg;
    struct call *c = http_user(r);
    double seconds = (double)(now_ns() - http_born_ns(r)) / 1e9;
    if (!c) {
        log_refused(a, r, seconds);
        return;
    }
    count_request(c, seconds);
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
