/* See cell_job.h. */

#include "api/jobs/cell_job.h"

#include "api/core/audit.h"
#include "api/core/body.h"
#include "api/core/quota.h"
#include "api/jobs/account.h"
#include "api/jobs/records.h"
#include "api/jobs/request_fields.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The limits of an execution, from the list LIMITS. */
#define AS_NUM(lo, hi)           .flags = FIELD_MIN | FIELD_MAX, .min = lo, .max = INT32_MAX
#define AS_LONG(lo, hi)          .flags = FIELD_MIN, .min = lo
#define NAMED(name_, flag, unit) .name = name_
#define HELP(takes, help_)       .help = help_
/* clang-format off */
#define CELL_LIMIT(member, type_, scope, named, helped, ...) CELL_LIMIT_##scope(type_, named, helped)
#define CELL_LIMIT_CELL(type_, named, helped)                {named, .type = FIELD_INT, AS_##type_, helped},
/* clang-format on */
#define CELL_LIMIT_CALL(...)
#define CELL_LIMIT_SANDBOX(...)
#define CELL_LIMIT_KERNEL(...)
static const struct field cell_fields[] = {
    {.name = "code", .type = FIELD_STRING, .flags = FIELD_REQUIRED | FIELD_LONG, .help = "a cell"},
    FIELD_OF_KERNEL_ID,
    {.name = "timeout_ms",
     .type = FIELD_INT,
     .flags = FIELD_MIN | FIELD_MAX,
     .min = 1,
     .max = INT32_MAX,
     .fallback = "30000",
     .help = "then it is interrupted"},
    FIELD_OF_ENV("environment variables for this execution"),
    FIELD_OF_STDIN("what input() and sys.stdin read, then the end of the file"),
    {.name = "allow_stdin",
     .type = FIELD_BOOL,
     .help = "whether somebody answers input(); true for streams"},
    {.name = "silent",
     .type = FIELD_BOOL,
     .fallback = "false",
     .help = "no result, no history, no count"},
    {.name = "store_history", .type = FIELD_BOOL, .fallback = "true"},
    FIELD_OF_FORMATS,
    LIMITS(CELL_LIMIT) /* cpu_seconds, … */
    FIELD_OF_ON_DISCONNECT("what happens when the client goes away"),
};
const struct schema cell_schema = {"CellRequest", cell_fields,
                                   sizeof cell_fields / sizeof *cell_fields, false};

struct cell_job {
    struct cell *cell;        /* borrowed while it runs */
    const struct cell *ended; /* borrowed while its end is told */
    struct record *record;
    void (*on_done)(void *arg, struct record *rec, const struct err *why); /* or NULL */
    void *arg;
    char id[ID_MAX];
    struct caller who;
    struct audit_code code;
    bool left, goes_on;
};

struct live *call_live(struct call *c) {
    struct err e;
    struct live *l = live_find(c->api->o.engine, c->who.tenant, c->params[0], &e);
    if (!l)
        call_fail(c, &e);
    return l;
}

struct kernel *call_kernel(struct call *c, struct live *l, const char *id) {
    struct err e;
    struct kernel *k = kernel_find(l, id, &e);
    if (!k)
        call_fail(c, &e);
    return k;
}

const char *cell_job_id(const struct cell_job *x) {
    return x->id;
}

struct record *cell_job_record(struct cell_job *x) {
    return x->record;
}

const struct cell *cell_job_ended(const struct cell_job *x) {
    return x->ended;
}

void cell_job_hold(struct cell_job *x, bool hold) {
    if (x->cell)
        cell_hold(x->cell, hold);
}

void cell_job_leave(struct cell_job *x) {
    x->left = true;
    cell_hold(x->cell, false);
    if (!x->goes_on)
        cell_interrupt(x->cell);
}

static void cell_job_on_hold(void *arg, bool on) {
    cell_job_hold(arg, on);
}

static void cell_job_on_leave(void *arg) {
    cell_job_leave(arg);
}

struct events_source cell_job_source(struct cell_job *x) {
    return (struct events_source){.arg = x, .hold = cell_job_on_hold, .leave = cell_job_on_leave};
}

/* ---- from the engine ---- */

static void cell_job_on_event(void *arg, const char *type, const struct buf *json) {
    struct cell_job *x = arg;
    record_event(x->record, type, json->data, json->len);
}

static void end_record(struct cell_job *x, struct cell *c, const struct err *why) {
    AUTO_BUF json = BUF_INIT;
    if (why) {
        struct problem p = problem_of(why);
        problem_json(&p, &json);
        record_event(x->record, "failed", json.data, json.len);
        record_end(x->record, json.data);
    } else {
        AUTO_ROPE result = ROPE_INIT;
        cell_end_json(c, &json);
        x->ended = c;
        record_event(x->record, "end", json.data, json.len);
        x->ended = NULL;
        cell_result(c, &result);
        record_end_with(x->record, &result);
    }
}

static void cell_job_on_done(void *arg, struct cell *c, const struct err *why) {
    struct cell_job *x = arg;
    struct receipt t = cell_receipt(c);
    account_execution(&x->who, x->id, &x->code, &t, why ? why->kind : NULL);
    x->cell = NULL;
    end_record(x, c, why);
    if (!x->left && x->on_done)
        x->on_done(x->arg, x->record, why);
    audit_code_done(&x->code);
    free(x);
}

/* ---- from the request ---- */

static void cell_job_read_request(const struct cell_job_options *o, struct cell_request *q) {
    const json_t *body = o->body;
    json_t *in = json_object_get(body, "stdin");
    *q = (struct cell_request){.code = json_incref(json_object_get(body, "code")),
                               .env = field_dump(body, "env"),
                               .formats = field_dump(body, "formats"),
                               .stdin_text = json_is_string(in) ? json_incref(in) : NULL,
                               .op = o->op,
                               .extra = BUF_INIT,
                               .tag = o->tag ? xstrdup(o->tag) : NULL,
                               .allow_stdin = field_bool(body, "allow_stdin", o->stream),
                               .silent = field_bool(body, "silent", false),
                               .no_history = !field_bool(body, "store_history", true)};
    if (o->extra) {
        q->extra = *o->extra;
        *o->extra = (struct buf)BUF_INIT;
    }
    limits_read_execution(body, &q->limits);
    q->own_bounds = o->limits != NULL;
    if (o->limits)
        q->limits = *o->limits;
}

static struct cell_job *cell_job_new(const struct caller *who, const struct cell_job_options *o) {
    struct cell_job *x = xcalloc(1, sizeof *x);
    bool keeps_code = strcmp(who->api->config->http.audit_code, "on") == 0;
    x->who = *who;
    x->on_done = o->on_done;
    x->arg = o->arg;
    x->goes_on =
        o->goes_on || strcmp(field_str(o->body, "on_disconnect", "interrupt"), "continue") == 0;
    const json_t *code = json_object_get(o->body, "code");
    if (o->sha256)
        audit_code_of(&x->code, o->sha256, json_string_value(code), json_string_length(code),
                      keeps_code);
    else
        body_audit(o->large, code, keeps_code, &x->code);
    return x;
}

/* Faults that show before the cell is made. */
static int cell_job_check(const struct caller *who, const struct cell_job_options *o,
                          struct problem *p) {
    if (live_is_paused(o->live))
        return problem_set(p, "sandbox_paused", "the sandbox is paused");
    if (env_check(o->body, p) < 0)
        return -1;
    if (json_string_length(json_object_get(o->body, "code")) > RUN_MAX_CODE)
        return problem_set(p, "code_too_long", "the cell has more than 16 MiB");
    return quota_may_run(who, p);
}

int cell_job_start(const struct caller *who, const struct cell_job_options *o,
                   struct cell_job **ret, struct problem *p) {
    struct cell_request q;
    struct err e;
    struct kernel *k = kernel_find(o->live, field_str(o->body, "kernel_id", NULL), &e);
    if (!k) {
        *p = problem_of(&e);
        return -1;
    }
    if (cell_job_check(who, o, p) < 0)
        return -1;
    struct cell_job *x = cell_job_new(who, o);
    const struct cell_callbacks cb = {
        .arg = x, .on_event = cell_job_on_event, .on_done = cell_job_on_done};
    cell_job_read_request(o, &q);
    if (cell_new(k, &q, &cb, &x->cell, &e) < 0) {
        *p = problem_of(&e);
        cell_request_done(&q);
        audit_code_done(&x->code);
        free(x);
        return -1;
    }
    memcpy(x->id, cell_id(x->cell), sizeof x->id);
    x->record = record_new(who->api->records, x->id, who->tenant);
    *ret = x;
    return 0;
}

void cell_job_prepare(struct body *b, const json_t *request) {
    const json_t *code = json_object_get(request, "code");
    struct body_text *t = json_string_length(code) > RUN_MAX_CODE ? NULL : body_add_text(b, code);
    if (t)
        body_text_hash(t); /* a cell's code is a message: it needs no memfd */
}

void cell_job_inherit(void *arg, struct live *l, struct cell *c, uint64_t number) {
    struct cell_job *x = xcalloc(1, sizeof *x);
    const struct cell_callbacks cb = {
        .arg = x, .on_event = cell_job_on_event, .on_done = cell_job_on_done};
    x->who.api = arg;
    x->cell = c;
    x->left = true; /* the client will come for its events */
    snprintf(x->who.tenant, sizeof x->who.tenant, "%s", live_tenant(l));
    memcpy(x->id, cell_id(c), sizeof x->id);
    audit_code(&x->code, "", 0, false);
    x->record = record_new(x->who.api->records, x->id, x->who.tenant);
    record_skip(x->record, number);
    if (cell_tag(c))
        dialects_inherit(x->who.api, l, c, x);
    cell_call(c, &cb);
}
