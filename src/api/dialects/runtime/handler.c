/* Sandbox Runtime: POST /v2/execute_code, a handler that is called once. It is a one-shot execution
 * from the warm pool like all others (oneshot.h), with its event and its context behind the code
 * (RUN_HANDLER), and its result beside the output. What is wrong with the code is said in stderr,
 * in the words of Sandbox Runtime: some of that here, most by the interpreter that sees it
 * (py/cell/handler.py). */

#include "api/dialects/runtime/runtime.h"
#include "api/jobs/inputs.h"
#include "api/jobs/oneshot_wait.h"
#include "base/fd.h"
#include "base/json_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MAX_S 3600
#define TEXT_MAX      (4 << 20) /* bytes: what is made of it is made in the loop */
#define NO_CODE       "System error: handler_code 不能为空"

static const struct field lambda_fields[] = {
    {.name = "handler_code",
     .type = FIELD_STRING,
     .flags = FIELD_REQUIRED | FIELD_MAX,
     .max = TEXT_MAX,
     .help = "Python with a function handler(event) or handler(event, context)"},
    {.name = "event",
     .type = FIELD_OBJECT,
     .flags = FIELD_NULLABLE | FIELD_MAX,
     .max = TEXT_MAX,
     .fallback = "{}",
     .help = "its first argument; __timeout: seconds"},
    {.name = "context",
     .type = FIELD_OBJECT,
     .flags = FIELD_NULLABLE,
     .fallback = "{}",
     .help = "function_name, request_id and their like, of its second argument"},
};
static const struct schema runtime_lambda_schema = {"RuntimeHandler", lambda_fields, 3, true};

static const char *const context_names[] = {
    "function_name",      "function_version",     "request_id",
    "log_group_name",     "log_stream_name",      "remaining_time_in_millis",
    "memory_limit_in_mb", "invoked_function_arn", NULL};

/* ---- the reply ---- */

static double rounded(double v) {
    return round(v * 1000) / 1000;
}

struct metrics_of {
    double wall_ms, cpu_ms, memory_mb;
    uint32_t timeout_s;
};

static void handler_put_reply(const struct rope *out, const struct rope *err,
                              const struct buf *result, const struct metrics_of *m,
                              struct rope *to) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    rope_key_texts(to, &j, "stdout", out);
    rope_key_texts(to, &j, "stderr", err);
    jw_key(&j, "result");
    if (result->len)
        jw_raw(&j, result->data, result->len);
    else
        jw_null(&j);
    jw_key(&j, "metrics");
    jw_object(&j);
    jw_key_real(&j, "duration_ms", rounded(m->wall_ms));
    jw_key_real(&j, "memory_peak_mb", rounded(m->memory_mb));
    jw_key_real(&j, "cpu_time_ms", rounded(m->cpu_ms));
    jw_key_uint(&j, "timeout_seconds", m->timeout_s);
    jw_object_end(&j);
    jw_object_end(&j);
    rope_add(to, &json);
}

static int put_error(const char *code, const char *detail, struct rope *to) {
    bool late = strcmp(code, "Sandbox.ExecTimeout") == 0;
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key(&j, "detail");
    jw_object(&j);
    jw_key_str(&j, "error_code", code);
    jw_key_str(&j, "description",
               late ? "Handler execution timeout" : "Handler execution exception");
    jw_key_str(&j, "error_detail", detail);
    jw_key_str(&j, "solution",
               late ? "Consider optimizing your handler or increasing the __timeout parameter in "
                      "the event"
                    : "Please check your handler code for errors");
    jw_object_end(&j);
    jw_object_end(&j);
    rope_add(to, &json);
    return 500;
}

/* It did not come to its end: why. */
static int put_cut_off(const struct run *r, const struct receipt *t, struct rope *to) {
    char text[200];
    if (strcmp(t->status, "timeout") == 0) {
        snprintf(text, sizeof text, "Execution timed out after %u seconds", t->timeout_ms / 1000);
        return put_error("Sandbox.ExecTimeout", text, to);
    }
    run_why(r, text, sizeof text);
    return put_error("Sandbox.ExecException",
                     *text ? text : "its process ended before the handler returned", to);
}

static int handler_put_result(const struct oneshot_way *way, const struct oneshot *x,
                              struct rope *to) {
    AUTO_ROPE out = ROPE_INIT, err = ROPE_INIT, json = ROPE_INIT;
    AUTO_BUF none = BUF_INIT;
    const struct run *r = oneshot_run(x);
    struct receipt t = run_receipt(r);
    const struct buf *result = run_returned(r);
    if (strcmp(t.status, "ok") != 0 && strcmp(t.status, "error") != 0)
        return put_cut_off(r, &t, to);
    rope_add_text(&out, run_text(r, 1), 0, run_text(r, 1)->bytes.len);
    rope_add_text(&err, run_text(r, 2), 0, run_text(r, 2)->bytes.len);
    /* SECURITY: it is the program's word that this is JSON. */
    if (result->len && !json_is_value(result->data, result->len)) {
        rope_adds_text(&err, "System error: the result is no JSON, or nested too deeply\n");
        result = &none;
    }
    const struct metrics_of m = {t.wall_ms, t.cpu_ms, (double)t.memory_peak / 1048576.0,
                                 t.timeout_ms / 1000};
    handler_put_reply(&out, &err, result, &m, &json);
    runtime_wrap(way->form, &json, to);
    return 200;
}

/* Without running anything: what is wrong is in stderr. */
static void handler_refuse(struct call *c, uint32_t timeout_s, const char *why) {
    AUTO_ROPE out = ROPE_INIT, err = ROPE_INIT, json = ROPE_INIT;
    const struct metrics_of m = {.timeout_s = timeout_s};
    const struct buf none = BUF_INIT;
    rope_adds_text(&err, why);
    handler_put_reply(&out, &err, &none, &m, &json);
    runtime_reply_rope(c, &json);
}

/* ---- the request ---- */

/* False when it is no number; then the client has its reply. */
static bool read_timeout(struct call *c, uint32_t *ret) {
    const json_t *v = json_object_get(json_object_get(c->body, "event"), "__timeout");
    *ret = c->api->config->runtime.timeout_s;
    if (!v || json_is_null(v))
        return true;
    if (!json_is_number(v)) {
        call_problem(c, &(struct problem){.status = 400,
                                          .code = "bad_value",
                                          .message = "event.__timeout must be a number of seconds",
                                          .remediation = "give a number up to 3600"});
        return false;
    }
    double seconds = json_number_value(v);
    if (seconds > 0)
        *ret = seconds > TIMEOUT_MAX_S ? TIMEOUT_MAX_S : (uint32_t)ceil(seconds);
    return true;
}

static bool is_blank(const char *text) {
    return text[strspn(text, " \t\r\n\f\v")] == '\0';
}

static const char *unknown_context(const json_t *body) {
    json_t *context = json_object_get(body, "context"), *value;
    const char *key;
    json_object_foreach(context, key, value) {
        unsigned i = 0;
        while (context_names[i] && strcmp(context_names[i], key) != 0)
            i++;
        if (!context_names[i])
            return key;
    }
    return NULL;
}

static void add_json(struct buf *to, const json_t *body, const char *name) {
    AUTO_FREE char *text = field_dump(body, name);
    buf_addc(to, '\0');
    buf_adds(to, text ? text : "{}");
}

static json_t *program(const struct call *c, uint32_t timeout_s) {
    const struct config *cfg = c->api->config;
    AUTO_BUF code = BUF_INIT;
    const json_t *given = json_object_get(c->body, "handler_code");
    buf_add(&code, json_string_value(given), json_string_length(given));
    add_json(&code, c->body, "event");
    add_json(&code, c->body, "context");
    uint32_t cpus = runtime_cpus(cfg) ? runtime_cpus(cfg) : cfg->defaults.cpus_percent;
    return json_pack(
        "{s:o, s:I, s:b, s:{s:I, s:I, s:I, s:I, s:f}}", "code",
        json_stringn_nocheck(code.data, code.len), "timeout_ms", (json_int_t)timeout_s * 1000,
        "last_line_interactive", 0, "limits", "memory_mb",
        (json_int_t)(cfg->runtime.memory_kb / 1024), "cpu_seconds",
        (json_int_t)cfg->maxima.cpu_seconds, "pids",
        (json_int_t)(cfg->runtime.pids < cfg->maxima.pids ? cfg->runtime.pids : cfg->maxima.pids),
        "output_bytes",
        (json_int_t)(cfg->live.output_bytes < cfg->maxima.output_bytes ? cfg->live.output_bytes
                                                                       : cfg->maxima.output_bytes),
        "cpus", cpus / 100.0);
}

static void do_runtime_lambda(struct call *c) {
    uint32_t timeout_s;
    char text[300];
    if (!runtime_enter(c) || !read_timeout(c, &timeout_s))
        return;
    const char *unknown = unknown_context(c->body);
    if (is_blank(field_str(c->body, "handler_code", ""))) {
        handler_refuse(c, timeout_s, NO_CODE);
    } else if (unknown) {
        snprintf(
            text, sizeof text,
            "System error: LambdaContext.__init__() got an unexpected keyword argument '%.100s'",
            unknown);
        handler_refuse(c, timeout_s, text);
    } else {
        json_auto_t *body = program(c, timeout_s);
        oneshot_wait(c, body,
                     &(struct oneshot_way){.flags = RUN_HANDLER,
                                           .own_bounds = true,
                                           .no_files = true,
                                           .all_network = runtime_allows_network(c->api->config),
                                           .form = runtime_is_legacy(c),
                                           .put = handler_put_result});
    }
}

static const struct field metrics_fields[] = {
    HAS("duration_ms", FIELD_REAL),
    HAS("memory_peak_mb", FIELD_REAL),
    HAS("cpu_time_ms", FIELD_REAL),
    HAS("timeout_seconds", FIELD_INT),
};
static const struct schema metrics_schema = {SCHEMA("RuntimeMetrics", metrics_fields)};
static const struct field result_fields[] = {
    HAS("stdout", FIELD_STRING),
    HAS("stderr", FIELD_STRING),
    HAS("result", FIELD_JSON, .help = "what the handler returned"),
    HAS("metrics", OBJECT(metrics_schema)),
};
RUNTIME_REPLY(result_reply, "RuntimeHandled", result_fields);

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"POST", "/workspace/se/v2/execute_code", "Call a handler in a fresh sandbox",
      "sandbox-runtime", &runtime_lambda_schema, NULL, 200, "its output and what it returned",
      JSON_TYPE, .gives = &result_reply, .errors = ERRORS_OF_PROGRAM "400:bad_value",
      .replays = true}, do_runtime_lambda, .body_max = 64 * MB,
     .tell = runtime_tell_lambda, .refusal = &runtime_lambda_error},
};
/* clang-format on */
const struct route_table runtime_handler_routes = ROUTE_TABLE(routes);
