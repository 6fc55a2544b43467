/* What is done with the kernels of a live sandbox: executions, questions, interrupts, restarts. */

#include "api/native/kernels.h"
#include "api/jobs/event_schemas.h"
#include "api/native/native.h"

#include "api/core/pages.h"
#include "api/jobs/cell_job.h"
#include "api/jobs/events.h"
#include "api/jobs/job_wait.h"
#include "api/jobs/records.h"
#include "api/jobs/request_fields.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/num.h"
#include "base/text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where in which code. */
#define FIELDS_OF_CURSOR                                                                           \
    {.name = "code", .type = FIELD_STRING, .flags = FIELD_REQUIRED | FIELD_LONG}, {                \
        .name = "cursor", .type = FIELD_INT, .flags = FIELD_MIN | FIELD_NULLABLE, .min = 0,        \
        .help = "in characters; null: the end"                                                     \
    }

static const struct field which_fields[] = {FIELD_OF_KERNEL_ID};
const struct schema which_kernel_schema = {"WhichKernel", which_fields, 1, false};

static const struct field stdin_fields[] = {
    {.name = "value",
     .type = FIELD_STRING,
     .flags = FIELD_REQUIRED | FIELD_LONG,
     .unless = "eof",
     .help = "what input() returns"},
    {.name = "eof", .type = FIELD_BOOL, .fallback = "false", .help = "input() raises EOFError"},
    FIELD_OF_KERNEL_ID,
};
const struct schema stdin_schema = {"StdinRequest", stdin_fields, 3, false};

static const struct field kernel_fields[] = {
    FIELD_OF_ENV(NULL),
    FIELD_OF_CWD,
    {.name = "limits",
     .type = FIELD_OBJECT,
     .of = &kernel_limits_schema,
     .help = "its own, up to the sandbox's"},
};
static const struct schema kernel_schema = {"KernelRequest", kernel_fields, 3, false};

static const struct field complete_fields[] = {
    FIELDS_OF_CURSOR,
    FIELD_OF_KERNEL_ID,
};
static const struct schema complete_schema = {"CompleteRequest", complete_fields, 3, false};

static const struct field inspect_fields[] = {
    FIELDS_OF_CURSOR,
    {.name = "detail",
     .type = FIELD_INT,
     .flags = FIELD_MIN | FIELD_MAX,
     .min = 0,
     .max = 1,
     .fallback = "0"},
    FIELD_OF_KERNEL_ID,
};
static const struct schema inspect_schema = {"InspectRequest", inspect_fields, 4, false};

/* ---- executions ---- */

static void cell_wait_leave(void *job) {
    cell_job_leave(job);
}

static void cell_wait_on_done(void *arg, struct record *rec, const struct err *why) {
    struct job_wait *w = arg;
    if (why) {
        struct problem p = problem_of(why);
        outlet_problem(&w->out, &p);
    } else {
        AUTO_ROPE result = ROPE_INIT;
        rope_add_rope(&result, record_result(rec));
        outlet_rope(&w->out, 200, &result, record_id(rec));
    }
    job_wait_over(w);
}

static void execute_whole(struct call *c, struct live *l) {
    struct problem p = {0};
    struct cell_job *x;
    struct job_wait *w = job_wait_new(c, sizeof *w, cell_wait_leave);
    if (!w)
        return;
    const struct cell_job_options o = {
        .live = l, .body = c->body, .large = c->large, .on_done = cell_wait_on_done, .arg = w};
    if (cell_job_start(&c->who, &o, &x, &p) < 0) {
        outlet_problem(&w->out, &p);
        return;
    }
    w->job = x;
    http_add_header(c->req, "X-Execution-Id", cell_job_id(x));
}

static void do_cell(struct call *c) {
    struct live *l = call_live(c);
    enum events_form form = events_wanted(c);
    struct problem p = {0};
    struct cell_job *x;
    if (!l)
        return;
    if (form == EVENTS_NONE) {
        execute_whole(c, l);
        return;
    }
    struct outlet out;
    if (!outlet_open(c, &out))
        return;
    const struct cell_job_options o = {.live = l,
                                       .body = c->body,
                                       .large = c->large,
                                       .stream = true,
                                       .goes_on = out.replay != NULL};
    if (cell_job_start(&c->who, &o, &x, &p) < 0) {
        outlet_problem(&out, &p);
        outlet_done(&out);
        return;
    }
    outlet_refer(&out, cell_job_id(x));
    outlet_done(&out);
    http_add_header(c->req, "X-Execution-Id", cell_job_id(x));
    const struct events_source from = cell_job_source(x);
    events_stream(c, cell_job_record(x), form, 0, &from);
}

/* ---- one kernel ---- */

/* A paused sandbox starts nothing and ends nothing. */
static struct live *running_live(struct call *c) {
    struct live *l = call_live(c);
    if (!l || !live_is_paused(l))
        return l;
    call_refuse(c, "sandbox_paused", "the sandbox is paused");
    return NULL;
}

static struct kernel *chosen(struct call *c) {
    struct live *l = running_live(c);
    return l ? call_kernel(c, l, field_str(c->body, "kernel_id", NULL)) : NULL;
}

static const struct field interrupted_fields[] = {
    HAS("interrupted", FIELD_BOOL, .help = "whether something ran"),
};
const struct schema interrupted_schema = {SCHEMA("Interrupted", interrupted_fields)};

void kernel_interrupt_json(struct kernel *k, struct buf *to) {
    struct jw j = JW_INIT(to);
    jw_object(&j);
    jw_key_bool(&j, "interrupted", kernel_interrupt(k));
    jw_object_end(&j);
}

static void do_interrupt(struct call *c) {
    struct kernel *k = chosen(c);
    AUTO_BUF json = BUF_INIT;
    if (!k)
        return;
    kernel_interrupt_json(k, &json);
    call_json(c, 200, &json);
}

int kernel_answer(struct kernel *k, const json_t *body, struct err *e) {
    return field_bool(body, "eof", false) ? kernel_no_stdin(k, e)
                                          : kernel_stdin(k, json_object_get(body, "value"), e);
}

static void do_stdin(struct call *c) {
    struct kernel *k = chosen(c);
    struct err e;
    if (!k)
        return;
    if (kernel_answer(k, c->body, &e) < 0)
        call_fail(c, &e);
    else
        http_reply(c->req, 200, "application/json", "{}", 2);
}

/* Somebody waits for a kernel or its answer. */
struct asking {
    struct call *call;
    char sandbox[ID_MAX];
    int status;
};

static void free_asking(void *state) {
    struct asking *w = state;
    struct err e;
    struct live *l = live_find(w->call->api->o.engine, w->call->who.tenant, w->sandbox, &e);
    if (l) {
        kernel_unwait(l, w);
        kernel_unquery(l, w);
        live_release(l);
    }
    free(w);
}

static struct asking *ask_for(struct call *c, struct live *l, int status) {
    struct asking *w = xcalloc(1, sizeof *w);
    w->call = c;
    w->status = status;
    snprintf(w->sandbox, sizeof w->sandbox, "%s", live_id(l));
    c->state = w;
    c->state_done = free_asking;
    live_hold(l);
    return w;
}

static void kernels_on_kernel(void *arg, struct kernel *k, const struct err *why) {
    struct asking *w = arg;
    AUTO_BUF json = BUF_INIT;
    if (why) {
        call_fail(w->call, why);
        return;
    }
    kernel_json(k, &json);
    call_json(w->call, w->status, &json);
}

static void do_restart(struct call *c) {
    struct live *l = running_live(c);
    struct kernel *k = l ? call_kernel(c, l, field_str(c->body, "kernel_id", NULL)) : NULL;
    if (k)
        kernel_restart(k, kernels_on_kernel, ask_for(c, l, 200));
}

static void do_kernel_new(struct call *c) {
    struct live *l = running_live(c);
    struct limits limits;
    struct problem p = {0};
    struct err e;
    if (!l)
        return;
    if (env_check_kept(c->body, &p) < 0 || cwd_check(c->body, &p) < 0 ||
        limits_read(c->body, UINT32_MAX, &limits, &p) < 0) {
        call_problem(c, &p);
        return;
    }
    AUTO_FREE char *env = field_dump(c->body, "env");
    struct asking *w = ask_for(c, l, 201);
    const struct kernel_request q = {
        .env = env, .cwd = field_str(c->body, "cwd", NULL), .limits = &limits};
    if (kernel_new(l, &q, kernels_on_kernel, w, &e) < 0)
        call_fail(c, &e);
}

static void do_kernels(struct call *c) {
    struct live *l = call_live(c);
    struct page_walk w;
    if (!l || !page_walk(c, "kernels", &w))
        return;
    for (struct kernel *k = kernel_next(l, NULL); k; k = kernel_next(l, k)) {
        struct buf *to = page_place(&w, kernel_id(k));
        if (to)
            kernel_json(k, to);
    }
    page_reply(c, &w);
}

static struct kernel *kernels_named(struct call *c) {
    struct live *l = call_live(c);
    return l ? call_kernel(c, l, c->params[1]) : NULL;
}

static void do_kernel(struct call *c) {
    const struct kernel *k = kernels_named(c);
    AUTO_BUF json = BUF_INIT;
    if (!k)
        return;
    kernel_json(k, &json);
    call_json(c, 200, &json);
}

static void do_kernel_delete(struct call *c) {
    struct live *l = running_live(c);
    struct kernel *k = l ? call_kernel(c, l, c->params[1]) : NULL;
    struct err e;
    if (!k)
        return;
    if (kernel_delete(k, &e) < 0)
        call_fail(c, &e);
    else
        http_reply(c->req, 204, NULL, "", 0);
}

/* ---- questions ---- */

static void on_reply(void *arg, const char *json, size_t len, const struct err *why) {
    struct asking *w = arg;
    if (why)
        call_fail(w->call, why);
    else
        http_reply(w->call->req, 200, "application/json", json, len);
}

/* `members`: what the question has beside its op, the inside of a JSON object. */
static void query(struct call *c, const char *kernel_id, const char *op, const char *members) {
    struct live *l = running_live(c);
    struct kernel *k = l ? call_kernel(c, l, kernel_id) : NULL;
    struct err e;
    if (k && kernel_query(k, op, members, on_reply, ask_for(c, l, 200), &e) < 0)
        call_fail(c, &e);
}

/* Characters, as the kernel counts them. */
static void query_code(struct call *c, const char *op) {
    const char *code = field_str(c->body, "code", "");
    size_t all = text_chars(code, strlen(code));
    int64_t cursor = field_int(c->body, "cursor", (int64_t)all);
    AUTO_BUF members = BUF_INIT;
    struct jw j = JW_INIT(&members);
    jw_key_str(&j, "code", code);
    jw_key_int(&j, "cursor", cursor > (int64_t)all ? (int64_t)all : cursor);
    jw_key_int(&j, "detail", field_int(c->body, "detail", 0));
    query(c, field_str(c->body, "kernel_id", NULL), op, members.data);
}

static void do_complete(struct call *c) {
    query_code(c, "complete");
}

static void do_inspect(struct call *c) {
    query_code(c, "inspect");
}

static const struct field variables_fields[] = {
    {.name = "kernel_id", .type = FIELD_STRING, .help = "the first kernel, if none is named"},
    {.name = "limit",
     .type = FIELD_INT,
     .flags = FIELD_MIN | FIELD_MAX,
     .min = 1,
     .max = 1000,
     .fallback = "1000"},
};
static const struct schema variables_query = {"", variables_fields, 2, false};

static void do_variables(struct call *c) {
    const struct num_rule rule = {"limit", 1, 1000};
    const char *limit = call_query(c, "limit");
    uint32_t most = 1000;
    struct err e;
    AUTO_BUF members = BUF_INIT;
    struct jw j = JW_INIT(&members);
    if (limit && num_u32(limit, &rule, &most, &e) < 0) {
        call_refuse(c, "bad_value", "%s", e.text);
        return;
    }
    jw_key_uint(&j, "most", most);
    query(c, call_query(c, "kernel_id"), "variables", members.data);
}

/* What a kernel answers: py/cell/live.py and variables.py. */
static const struct field completion_fields[] = {
    HAS("matches", FIELD_LIST),
    HAS("types", FIELD_LIST, .help = "of each match"),
    HAS("start", FIELD_INT, .help = "what they replace, in characters"),
    HAS("end", FIELD_INT),
};
static const struct schema completion_schema = {SCHEMA("Completion", completion_fields)};
static const struct field inspection_fields[] = {
    HAS("found", FIELD_BOOL),
    HAS("data", FIELD_MAP, .help = "by MIME type"),
};
static const struct schema inspection_schema = {SCHEMA("Inspection", inspection_fields)};
static const struct field variable_fields[] = {
    HAS("name", FIELD_STRING),        HAS("type", FIELD_STRING),
    HAS_OR_NULL("len", FIELD_INT),    HAS_OR_NULL("shape", FIELD_LIST, .items = FIELD_INT),
    HAS_OR_NULL("nbytes", FIELD_INT), HAS("repr", FIELD_STRING, .help = "shortened"),
};
static const struct schema variable_schema = {SCHEMA("Variable", variable_fields)};
static const struct field variables_reply_fields[] = {
    HAS("variables", LIST_OF(variable_schema)),
    HAS("total", FIELD_INT),
    HAS("truncated", FIELD_BOOL),
};
static const struct schema variables_reply = {SCHEMA("Variables", variables_reply_fields)};
static const struct field list_fields[] = {
    HAS("kernels", LIST_OF(kernel_view_schema)),
    PAGE_NEXT,
};
static const struct schema list_schema = {SCHEMA("KernelList", list_fields)};
static const struct schema empty_schema = {.name = "Empty"};

#define ERRORS_OF_CELL                                                                             \
    ERRORS_OF_KERNEL "kernel_busy queue_full queue_timeout memory_budget sandbox_lost "            \
                     "limit_too_high code_too_long interrupted too_much_cpu audit_unavailable "
#define ERRORS_OF_QUESTION ERRORS_OF_KERNEL "kernel_busy memory_budget"

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"POST", "/v1/sandboxes/{id}/execute", "Run a cell in a kernel", "sandboxes", &cell_schema, NULL,
      200, "the result, or a stream of events as the Accept header asks", JSON_TYPE,
      .gives = &cell_result_schema, .events = &cell_events_schema, .errors = ERRORS_OF_CELL,
      .replays = true}, do_cell,
     .body_max = 64 * MB, .prepare = cell_job_prepare},
    {{"POST", "/v1/sandboxes/{id}/interrupt", "KeyboardInterrupt in a kernel", "sandboxes",
      &which_kernel_schema, NULL, 200, "whether something ran", JSON_TYPE,
      .gives = &interrupted_schema, .errors = ERRORS_OF_KERNEL}, do_interrupt,
     .body_max = MB},
    {{"POST", "/v1/sandboxes/{id}/restart", "A fresh process for a kernel", "sandboxes",
      &which_kernel_schema, NULL, 200, "the kernel", JSON_TYPE, .gives = &kernel_view_schema,
      .errors = ERRORS_OF_CELL}, do_restart, .body_max = MB},
    {{"POST", "/v1/sandboxes/{id}/stdin", "Answer an input() that waits", "sandboxes", &stdin_schema,
      NULL, 200, "nothing", JSON_TYPE, .gives = &empty_schema,
      .errors = ERRORS_OF_KERNEL "not_waiting stdin_full interrupted"}, do_stdin, .body_max = 16 * MB},
    {{"POST", "/v1/sandboxes/{id}/kernels", "One more kernel", "sandboxes", &kernel_schema, NULL, 201,
      "the kernel", JSON_TYPE, .gives = &kernel_view_schema,
      .errors = ERRORS_OF_CELL "cannot_limit"}, do_kernel_new, .body_max = MB},
    {{"GET", "/v1/sandboxes/{id}/kernels", "List kernels", "sandboxes", NULL, NULL, 200, "the kernels",
      JSON_TYPE, &pages_query, .gives = &list_schema, .errors = ERRORS_OF_SANDBOX}, do_kernels},
    {{"GET", "/v1/sandboxes/{id}/kernels/{kernel_id}", "Look at a kernel", "sandboxes", NULL, NULL,
      200, "the kernel", JSON_TYPE, .gives = &kernel_view_schema, .errors = ERRORS_OF_KERNEL},
     do_kernel},
    {{"DELETE", "/v1/sandboxes/{id}/kernels/{kernel_id}", "End a kernel", "sandboxes", NULL, NULL,
      204, "nothing", NULL, .errors = ERRORS_OF_KERNEL "is_default"}, do_kernel_delete},
    {{"POST", "/v1/sandboxes/{id}/complete", "Complete code", "sandboxes", &complete_schema, NULL,
      200, "matches, and what they replace", JSON_TYPE, .gives = &completion_schema,
      .errors = ERRORS_OF_QUESTION}, do_complete, .body_max = MB},
    {{"POST", "/v1/sandboxes/{id}/inspect", "What a name is", "sandboxes", &inspect_schema, NULL, 200,
      "its documentation", JSON_TYPE, .gives = &inspection_schema, .errors = ERRORS_OF_QUESTION}, do_inspect, .body_max = MB},
    {{"GET", "/v1/sandboxes/{id}/variables", "The variables of a kernel", "sandboxes", NULL, NULL,
      200, "names, types, sizes, short reprs", JSON_TYPE, &variables_query,
      .gives = &variables_reply, .errors = ERRORS_OF_QUESTION}, do_variables},
};
/* clang-format on */
const struct route_table kernels_routes = ROUTE_TABLE(routes);
