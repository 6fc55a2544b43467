/* How Sandbox Runtime says errors: bare, in the legacy form, and those of handlers. */

#include "api/dialects/runtime/runtime.h"

#include "http/field_fault.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void runtime_error(struct call *c, int status, const char *code, const char *fmt, ...) {
    struct problem p = {.status = status, .code = code, .remediation = "see /docs"};
    va_list args;
    va_start(args, fmt);
    vsnprintf(p.text, sizeof p.text, fmt, args);
    va_end(args);
    call_problem(c, &p);
}

static void put_legacy_detail(struct jw *j, const struct problem *p, const char *message) {
    jw_object(j);
    jw_key_str(j, "type", p->status == 500 ? "UnexpectedError" : "SandboxError");
    jw_key_str(j, "message", p->detail ? p->detail : message);
    jw_key_str(j, "detail", p->remediation);
    jw_object_end(j);
}

/* These are about the request and not about a session: every path says them alike. */
static bool is_plain(int status) {
    return status == 401 || status == 403 || status == 413 || status == 429 || status == 503;
}

static const struct field legacy_fields[] = {
    HAS("type", FIELD_STRING, WORDS("UnexpectedError", "SandboxError")),
    HAS("message", FIELD_STRING),
    HAS("detail", FIELD_STRING),
};
static const struct schema legacy_detail = {SCHEMA("RuntimeDetail", legacy_fields)};
static const struct schema either_detail = {"RuntimeErrorDetail",
                                            ONE_OF(&detail_schema, &legacy_detail)};
static const struct field error_fields[] = {
    HAS("detail", OBJECT(either_detail)),
    HAS("error", OBJECT(cause_schema)),
};
const struct schema runtime_error_schema = {SCHEMA("RuntimeError", error_fields)};

int runtime_tell(const struct call *c, const struct problem *p, struct buf *to) {
    struct jw j = JW_INIT(to);
    const char *message = problem_message(p);
    bool legacy = runtime_is_legacy(c) && !is_plain(p->status);
    jw_object(&j);
    jw_key(&j, "detail");
    if (legacy)
        put_legacy_detail(&j, p, message);
    else
        jw_str(&j, p->detail ? p->detail : message);
    problem_put(p, &j);
    jw_object_end(&j);
    if (legacy)
        return 500;
    return strcmp(p->code, "bad_path") == 0 ? 400 : p->status;
}

static const struct {
    const char *code, *error_code, *description;
} lambda_words[] = {
    {"bad_value", "Sandbox.InvalidParameter", "Invalid parameter"},
    {"limit_too_high", "Sandbox.InvalidParameter", "Invalid parameter"},
    {"profile_broken", "Sandbox.NotInitialized", "Sandbox executor not initialized"},
    {"queue_full", "Sandbox.TooManyRequestsExection", "Too many requests"},
    {"queue_timeout", "Sandbox.TooManyRequestsExection", "Too many requests"},
    {"memory_budget", "Sandbox.TooManyRequestsExection", "Too many requests"},
    {"internal", "Sandbox.InternalError", "Internal error"},
};

static const struct field lambda_fields[] = {
    HAS("error_code", FIELD_STRING, .help = "Sandbox.…"),
    HAS("description", FIELD_STRING),
    HAS("error_detail", FIELD_STRING),
    HAS("solution", FIELD_STRING),
};
static const struct schema lambda_detail = {SCHEMA("RuntimeHandlerDetail", lambda_fields)};
static const struct schema lambda_either = {"RuntimeHandlerErrorDetail",
                                            ONE_OF(&detail_schema, &lambda_detail)};
static const struct field lambda_error_fields[] = {
    HAS("detail", OBJECT(lambda_either)),
    MAY_HAVE("error", OBJECT(cause_schema), .help = "unless it is the handler that failed"),
};
const struct schema runtime_lambda_error = {SCHEMA("RuntimeHandlerError", lambda_error_fields)};

int runtime_tell_lambda(const struct call *c, const struct problem *p, struct buf *to) {
    struct jw j = JW_INIT(to);
    const char *message = problem_message(p);
    const char *code = "Sandbox.ExecException", *description = "Handler execution exception";
    (void)c;
    for (size_t i = 0; i < sizeof lambda_words / sizeof *lambda_words; i++) {
        if (strcmp(lambda_words[i].code, p->code) == 0) {
            code = lambda_words[i].error_code;
            description = lambda_words[i].description;
        }
    }
    jw_object(&j);
    jw_key(&j, "detail");
    jw_object(&j);
    jw_key_str(&j, "error_code", code);
    jw_key_str(&j, "description", description);
    jw_key_str(&j, "error_detail", message);
    jw_key_str(&j, "solution", p->remediation);
    jw_object_end(&j);
    problem_put(p, &j);
    jw_object_end(&j);
    return p->status;
}

void runtime_bad_query(struct call *c, const char *name, const char *type, const char *message) {
    const char *value = call_query(c, name);
    json_auto_t *input = json_string_nocheck(value ? value : "");
    call_fault(c, "query", name, &(struct field_fault){type, message, input, NULL});
}
