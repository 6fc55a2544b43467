/* See problem.h. */

#include "api/core/problem.h"

#include "base/json.h"
#include "http/field_fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SEE_DOCS "see /docs"
#define LATER    "try again later"

/* One table from the words of docs/errors.md to HTTP. */
static const struct kind {
    const char *code;
    int status;
    const char *remediation;
    bool retryable;
    unsigned retry_after_s;
} kinds[] = {
    /* the request */
    {"bad_request", 400, "send a request that can be read in one way only"},
    {"bad_body", 400, SEE_DOCS},
    {"bad_form", 400, "send all of it"},
    {"bad_header", 400, "leave it out, and send the whole file"},
    {"no_key", 401,
     "send it as \"Authorization: Bearer KEY\" or X-API-Key; the operator makes one with "
     "`cloche key add`"},
    {"bad_key", 401,
     "send it as \"Authorization: Bearer KEY\" or X-API-Key; the operator makes one with "
     "`cloche key add`"},
    {"bad_link", 403, "ask for another one: POST the sandbox's /links"},
    {"bad_origin", 403,
     "list the site with --cors-origin, or the server's own name with --allow-host"},
    {"no_route", 404, "GET /openapi.json lists what there is"},
    {"bad_method", 405, "see the Allow header"},
    {"body_too_large", 413, "upload large data with POST /v1/files"},
    {"bad_handshake", 400, "use a WebSocket client (RFC 6455)"},
    {"no_websocket", 426, "use a WebSocket client (RFC 6455)"},
    {"bad_host", 421, "use 127.0.0.1 or localhost, or list the name with --allow-host"},
    {"bad_fields", 422, SEE_DOCS},
    {"bad_json", 422, SEE_DOCS},
    {"bad_value", 422, SEE_DOCS},
    {"bad_base64", 422, SEE_DOCS},
    {"bad_idempotency_key", 422, "send a UUID, for example"},
    {"idempotency_key_reused", 422, "use a new key for a new request"},
    {"idempotency_key_busy", 409, "try again when it is through", true, 1},
    {"idempotency_keys_full", 429, "send it without a key, or wait: each is kept for an hour", true,
     60},
    {"reply_not_kept", 409,
     "look the execution up, if it has an id, with GET /v1/executions/ID; a new key runs it "
     "again"},
    {"client_gone", 503, "send it again", true, 1},

    /* what a key or the server has room for */
    {"too_many_at_once", 429, "wait, or ask the operator for more", true, 1},
    {"too_many_requests", 429, "wait, or ask the operator for more", true, 1},
    {"too_much_cpu", 429, "wait, or ask the operator for more", true, 1},
    {"too_many_executions", 429, "wait for one to end, or open another connection", true},
    {"too_many_commands", 429, "wait for one to end, or kill it", true, 1},
    {"too_many_archives", 429, "wait for one to end", true, 1},
    {"too_many_sandboxes", 429, "delete one that is not needed", true, 5},
    {"too_many_connections", 503, "try again later, or use fewer connections", true, 1},
    {"too_many_listeners", 429, "delete a sandbox that has a port", true, 5},
    {"bodies_full", 503, "try again later, or send less at a time", true, 1},
    {"queue_full", 503, LATER, true, 1},
    {"queue_timeout", 503, LATER, true, 1},
    {"memory_budget", 503, LATER, true, 1},
    {"no_descriptors", 503, "try again later, or send fewer files at a time", true, 1},
    {"no_port", 503, "try again later; the server's log says more", true, 2},
    {"no_sandbox", 503, "try again later; the server's log says more", true, 2},
    {"sandbox_busy", 503, LATER, true, 1},
    {"sandbox_lost", 503, "run it again", true, 1},
    {"audit_unavailable", 503,
     "the operator has to make room for the audit log, or to let programs run without it "
     "(--audit-full allow)",
     true, 5},

    /* programs */
    {"unknown_profile", 422, "choose one of GET /v1/profiles, or leave it to auto"},
    {"profile_broken", 503, "choose another profile, or see the server's log", false, 60},
    {"no_such_profile", 404, "GET /v1/profiles lists those there"},
    {"no_right", 403, "the operator gives it to a key: `cloche key add --right profiles`"},
    {"profiles_off", 501, "the operator sets tenant_profiles"},
    {"profile_exists", 409, "choose another name, or delete that one"},
    {"profile_building", 409, "wait for its end: GET /v1/profiles/NAME/events", true, 10},
    {"profile_in_use", 409, "end what has it, or add ?force=true"},
    {"too_many_profiles", 429, "delete one that is not needed"},
    {"too_many_builds", 429, "wait for one to end", true, 10},
    {"profiles_full", 507, "delete one that is not needed"},
    {"limit_too_high", 422, "ask for less; GET /v1/info tells the maxima"},
    {"code_too_long", 413, "send the data as a file"},
    {"no_execution", 404, "executions are remembered for a few minutes only"},
    {"interrupted", 409, "run it again"},

    /* the network */
    {"network_rule_invalid", 422, "see docs/network.md for what a rule may be"},
    {"network_not_allowed", 403,
     "ask for less; what the server and this key grant at most is in GET /v1/info, and the "
     "operator "
     "sets it (network)"},
    {"network_unavailable", 503, "try again; cloche doctor and the server's log say more", true, 2},

    /* files */
    {"no_file", 404, "upload it again: files are kept for a time only"},
    {"file_too_large", 413, "send a smaller file, or raise max_file_mb"},
    {"disk_full", 413, "send less, or give the sandbox more disk (limits.disk_mb)"},
    {"bad_path", 422, "use a relative path without \"..\" that is not taken"},
    {"bad_range", 416, "ask for less: Content-Range tells the size"},
    {"bad_archive", 422, "send a tar.gz of files, directories and links"},
    {"no_such_path", 404, "GET …/files lists what there is"},
    {"path_taken", 409, "delete what is there, or choose another"},
    {"not_empty", 409, "add ?recursive=true"},
    {"path_busy", 409, LATER, true},
    {"no_access", 403, "the host lets sandboxes only read it, or keeps it from them"},

    /* directories of the host */
    {"bind_not_allowed", 403,
     "ask for one that the operator allows, or for mode ro (setting bind_allow)"},
    {"bad_bind", 422, "name a directory that is there, without symbolic links on the way"},

    /* live sandboxes */
    {"no_such_sandbox", 404, "GET /v1/sandboxes lists those there"},
    {"sandbox_gone", 410, "make a new one"},
    {"sandbox_paused", 409, "resume it first"},
    {"name_taken", 409, "choose another, or delete that one"},
    {"cannot_pause", 501, "see cloche doctor"},
    {"cannot_listen", 501, "leave listen out; the operator sets live_listeners and dialects"},
    {"port_closed", 502, "start a server there: GET the sandbox's /ports lists those that listen"},
    {"port_bad_answer", 502, "see what the server sends: it has to be HTTP/1.1 in its strict form"},
    {"port_timeout", 504, "see what the server does", true},
    {"no_ports_domain", 501, "the operator sets ports_domain; …/ports/PORT/ works without"},
    {"ports_unavailable", 501, "make another sandbox"},
    {"cannot_limit", 501, "leave limits out; see cloche doctor"},
    {"no_such_kernel", 404, "GET the sandbox's /kernels"},
    {"kernel_gone", 410, "use another kernel"},
    {"kernel_busy", 409, LATER, true},
    {"kernel_failed", 409, "try again, or restart the kernel"},
    {"is_default", 409, "restart it, or delete the sandbox"},
    {"not_waiting", 409, "wait for an input event"},
    {"no_such_command", 404, "GET the sandbox's /commands"},
    {"no_events", 404, "GET the command for its output"},
    {"command_over", 409, "GET the command for its result"},
    {"no_terminal", 409, "start one with GET …/commands/pty"},
    {"stdin_closed", 409, "start it with background: true, and send eof last"},
    {"stdin_full", 409, LATER, true},

    /* what some dialects refuse themselves */
    {"no_such_module", 404, "upload it, or ask for another one"},
    {"modules_failed", 500, "see what the modules do when imported"},
    {"modules_timeout", 504, "see what the modules do when imported"},
    {"no_such_kernelspec", 404, "GET /api/kernelspecs lists those there"},
    {"no_such_session", 404, "GET /api/sessions lists those there"},
    {"no_such_file", 404, "GET /api/kernelspecs names those there"},
    {"session_exists", 409, SEE_DOCS},
    {"not_a_file", 400, SEE_DOCS},
    {"list_too_long", 400, SEE_DOCS},
    {"efast_off", 400, SEE_DOCS},
    {"efast_not_allowed", 400, SEE_DOCS},
};

static const struct kind internal = {"internal", 500, "see the server's log"};

/* ---- for the specification ---- */

static const struct field cause_fields[] = {
    {.name = "code", .flags = FIELD_REQUIRED | FIELD_CODE, .help = "stable: for programs"},
    HAS("message", FIELD_STRING, .help = "what happened"),
    HAS("remediation", FIELD_STRING, .help = "what to do"),
    HAS("retryable", FIELD_BOOL, .help = "whether the same request may do better later"),
};
const struct schema cause_schema = {SCHEMA("ErrorCause", cause_fields)};

static const struct schema detail_text = {"ErrorText", .value = &(struct field){0}};
static const struct schema detail_faults = {SCHEMA_OF_LIST("ErrorFaults", field_fault_schema)};
const struct schema detail_schema = {"ErrorDetail", ONE_OF(&detail_text, &detail_faults),
                                     .help = "the message, or what is wrong in each field"};

static const struct field error_fields[] = {
    HAS("error", OBJECT(cause_schema)),
    HAS("detail", OBJECT(detail_schema)),
};
const struct schema error_schema = {SCHEMA("Error", error_fields)};

static void describe(const struct kind *k, struct api_code *ret) {
    *ret = (struct api_code){k->code, k->status, k->remediation, k->retryable};
}

bool problem_code(const char *word, size_t len, struct api_code *ret) {
    const struct kind *k = &internal;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].code) == len && strncmp(kinds[i].code, word, len) == 0)
            k = &kinds[i];
    describe(k, ret);
    return strlen(k->code) == len && strncmp(k->code, word, len) == 0;
}

size_t problem_codes(struct api_code *to) {
    size_t n = sizeof kinds / sizeof *kinds;
    for (size_t i = 0; to && i < n; i++)
        describe(&kinds[i], &to[i]);
    if (to)
        describe(&internal, &to[n]);
    return n + 1;
}

/* ---- made ---- */

static const struct kind *kind_of(const char *code) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].code, code) == 0)
            return &kinds[i];
    }
    return &internal;
}

/* Without a message yet. */
static void problem_init(struct problem *p, const struct kind *k) {
    *p = (struct problem){.status = k->status,
                          .code = k->code,
                          .remediation = k->remediation,
                          .retryable = k->retryable,
                          .retry_after_s = k->retry_after_s};
}

int problem_vset(struct problem *p, const char *code, const char *fmt, va_list args) {
    problem_init(p, kind_of(code));
    vsnprintf(p->text, sizeof p->text, fmt, args);
    return -1;
}

int problem_set(struct problem *p, const char *code, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    problem_vset(p, code, fmt, args);
    va_end(args);
    return -1;
}

int problem_bad_value(struct problem *p, const char *remediation, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    problem_vset(p, "bad_value", fmt, args);
    va_end(args);
    p->remediation = remediation;
    return -1;
}

struct problem problem_of(const struct err *e) {
    bool no_fds = e->code == EMFILE || e->code == ENFILE;
    const struct kind *k = kind_of(no_fds ? "no_descriptors" : e->kind);
    struct problem p;
    problem_init(&p, k);
    snprintf(p.text, sizeof p.text, "%s", e->text);
    if (k == &internal) /* the log has the reason */
        p.message = "Internal Server Error";
    return p;
}

const char *problem_message(const struct problem *p) {
    return p->message ? p->message : p->text;
}

void problem_json(const struct problem *p, struct buf *to) {
    struct jw j = JW_INIT(to);
    jw_object(&j);
    problem_put(p, &j);
    jw_key_str(&j, "detail", p->detail ? p->detail : problem_message(p));
    jw_object_end(&j);
}

void problem_put(const struct problem *p, struct jw *j) {
    jw_key(j, "error");
    jw_object(j);
    jw_key_str(j, "code", p->code);
    jw_key_str(j, "message", problem_message(p));
    jw_key_str(j, "remediation", p->remediation);
    jw_key_bool(j, "retryable", p->retryable);
    jw_object_end(j);
}

void problem_add(const struct problem *p, struct buf *object) {
    struct jw j = {.to = object, .comma = true};
    object->len--; /* the closing brace */
    problem_put(p, &j);
    jw_object_end(&j);
}
