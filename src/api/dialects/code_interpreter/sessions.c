/* Sessions of the Code Interpreter API: a live sandbox in which one runs bash. The id of a session
 * is its sandbox's, with another word in front. */

#include "api/jobs/command_wait.h"
#include "api/jobs/inputs.h"
#include "api/jobs/live_requests.h"
#include "engine/live/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX     "code-session-"
#define OWN_PREFIX "sbx_"
#define TTL_S      900
#define TTL_MAX_S  86400
#define TIMEOUT_MS 30000
#define TRUNCATED  "\n...[truncated]"

static const struct field session_fields[] = {
    {.name = "files",
     .type = FIELD_LIST,
     .of = &inputs_schema,
     .flags = FIELD_NULLABLE | FIELD_MAX,
     .max = INPUTS_MAX,
     .fallback = "[]",
     .help = "files in its workspace"},
    {.name = "ttl_seconds",
     .type = FIELD_INT,
     .flags = FIELD_MIN | FIELD_MAX,
     .min = 1,
     .max = TTL_MAX_S,
     .fallback = "900",
     .help = "how long it lives"},
};
static const struct schema session_schema = {"SessionRequest", session_fields, 2, true};

static const struct field bash_fields[] = {
    {.name = "cmd", .type = FIELD_STRING, .flags = FIELD_REQUIRED, .help = "for bash -c"},
    {.name = "timeout_ms",
     .type = FIELD_INT,
     .flags = FIELD_MIN,
     .min = 1,
     .fallback = "30000",
     .help = "then everything that it started is killed"},
};
static const struct schema bash_schema = {"BashRequest", bash_fields, 2, true};

/* ---- made ---- */

static void bash_reply_made(struct outlet *o, struct live *l) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    char id[ID_MAX + sizeof PREFIX];
    snprintf(id, sizeof id, PREFIX "%s", live_id(l) + sizeof OWN_PREFIX - 1);
    jw_object(&j);
    jw_key_str(&j, "session_id", id);
    jw_key_real(&j, "expires_at", live_expires(l));
    jw_object_end(&j);
    outlet_json(o, 201, &json, NULL);
}

/* Limits are those of /v1/execute. The first profile will do: bash starts what it wants itself. */
static int bash_read_request(struct call *c, struct live_request *q, struct problem *p) {
    const struct engine *g = c->api->o.engine;
    uint32_t ttl = (uint32_t)field_int(c->body, "ttl_seconds", TTL_S);
    *q = live_request_for(&c->who);
    q->profile = xstrdup(g->config.profiles[0].name);
    q->metadata = xstrdup("{}");
    q->limits = g->config.defaults;
    q->ttl_s = q->idle_s = ttl;
    return inputs_read(
        &(struct inputs_source){
            .who = &c->who, .request = c->body, .large = c->large, .live = true},
        &q->inputs, &q->ninputs, p);
}

static void do_session_new(struct call *c) {
    live_requests_make(c, bash_read_request, bash_reply_made);
}

/* ---- used and ended ---- */

static struct live *bash_find(struct call *c) {
    const char *id = c->params[0];
    char own[ID_MAX], text[160];
    struct err e;
    struct live *l = NULL;
    if (strncmp(id, PREFIX, sizeof PREFIX - 1) == 0) {
        snprintf(own, sizeof own, OWN_PREFIX "%s", id + sizeof PREFIX - 1);
        l = live_find(c->api->o.engine, c->who.tenant, own, &e);
    }
    if (!l) {
        snprintf(text, sizeof text, "Session '%.100s' not found", id);
        call_problem(c, &(struct problem){.status = 404,
                                          .code = "no_such_sandbox",
                                          .message = text,
                                          .remediation = "make a new one: POST /v1/sessions"});
    }
    return l;
}

static void do_session_delete(struct call *c) {
    struct live *l = bash_find(c);
    if (l)
        live_requests_end(c, l, NULL);
}

/* ---- bash ---- */

/* As that API cuts: the first cap - 32 bytes and a mark. */
static void put_stream(struct rope *to, struct jw *j, const struct command_end *end, int i) {
    AUTO_ROPE texts = ROPE_INIT;
    size_t len = end->text[i]->bytes.len;
    size_t keep = !end->truncated[i] ? len : len > 32 ? len - 32 : 0;
    rope_add_text(&texts, end->text[i], 0, keep);
    if (end->truncated[i])
        rope_adds_text(&texts, TRUNCATED);
    rope_key_texts(to, j, i == 0 ? "stdout" : "stderr", &texts);
}

static void reply_over(struct call *c, const struct command_end *end, struct command_found *found) {
    (void)found;
    AUTO_ROPE reply = ROPE_INIT;
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    put_stream(&reply, &j, end, 0);
    put_stream(&reply, &j, end, 1);
    if (end->timed_out)
        jw_key_null(&j, "exit_code");
    else
        jw_key_int(&j, "exit_code", end->exit_code);
    jw_key_bool(&j, "timed_out", end->timed_out);
    jw_key_uint(&j, "duration_ms", end->duration_ms);
    jw_object_end(&j);
    rope_add(&reply, &json);
    http_reply_rope(c->req, 200, "application/json", &reply);
}

static char **bash_line(const char *cmd) {
    char **to = xcalloc(4, sizeof *to);
    to[0] = xstrdup("bash");
    to[1] = xstrdup("-c");
    to[2] = xstrdup(cmd);
    return to;
}

static void do_session_bash(struct call *c) {
    uint32_t most = c->api->config->maxima.timeout_ms;
    int64_t timeout = field_int(c->body, "timeout_ms", TIMEOUT_MS);
    struct problem p = {0};
    if (most && timeout > most) {
        char text[100];
        snprintf(text, sizeof text, "timeout_ms exceeds maximum of %u ms", most);
        problem_set(&p, "limit_too_high", "%s", text);
        call_problem(c, &p);
        return;
    }
    struct live *l = bash_find(c);
    if (!l)
        return;
    const char *cmd = field_str(c->body, "cmd", "");
    if (strlen(cmd) > 40000) {
        problem_set(&p, "bad_value", "cmd has more than 40000 bytes");
        call_problem(c, &p);
        return;
    }
    struct command_request q = {.argv = bash_line(cmd),
                                .shown = xstrdup(cmd),
                                .cwd = xstrdup("/workspace"),
                                .timeout_ms = (uint32_t)timeout};
    command_wait(c, l, &q, &(struct command_wait_options){.then = reply_over});
}

static const struct field made_fields[] = {
    HAS("session_id", FIELD_STRING),
    HAS("expires_at", FIELD_REAL, .help = "unix time"),
};
static const struct schema made_schema = {SCHEMA("Session", made_fields)};
static const struct field over_fields[] = {
    HAS("stdout", FIELD_STRING),         HAS("stderr", FIELD_STRING),
    HAS_OR_NULL("exit_code", FIELD_INT), HAS("timed_out", FIELD_BOOL),
    HAS("duration_ms", FIELD_INT),
};
static const struct schema over_schema = {SCHEMA("BashResult", over_fields)};

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"POST", "/v1/sessions", "A session: a place to run bash in", "sessions", &session_schema, NULL,
      201, "its id, and until when it lives", JSON_TYPE, .gives = &made_schema, .replays = true,
      .errors = ERRORS_OF_START "too_many_sandboxes"}, do_session_new, .body_max = 64 * MB, .prepare = inputs_prepare},
    {{"DELETE", "/v1/sessions/{session_id}", "End a session", "sessions", NULL, NULL, 204, "nothing",
      NULL, .errors = ERRORS_OF_SANDBOX}, do_session_delete},
    {{"POST", "/v1/sessions/{session_id}/bash", "Run bash in a session", "sessions", &bash_schema,
      NULL, 200, "its output", JSON_TYPE, .gives = &over_schema, .errors = ERRORS_OF_WAIT},
     do_session_bash, .body_max = 16 * MB},
};
/* clang-format on */
static const struct route_table table = ROUTE_TABLE(routes);

const struct dialect code_interpreter_dialect = {
    .name = "code-interpreter",
    .help = "Sessions of the Code Interpreter API: bash in a sandbox that stays",
    .tables = (const struct route_table *const[]){&table, NULL},
};
