/* The dialect PyRunner: POST /run, and its part of GET /.
 *
 * A request becomes one of POST /v1/execute with the policy `restricted`, and its result is said in
 * PyRunner's words. Where a limit is null it is the most that may be asked for. A request that the
 * service cannot take (queue full, no key) is an error as everywhere, with PyRunner's `detail`. */

#include "api/core/call.h"
#include "api/jobs/oneshot_wait.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CODE_MAX    1000000 /* characters */
#define CPU_SECONDS 300

/* The length of the white space at `s` that Python's strip() would take away; 0: none. */
static size_t space_len(const char *s) {
    static const char *const wide[] = {"\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80",
                                       "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf",
                                       "\xe2\x81\x9f", "\xe3\x80\x80"};
    if (*s && strchr(" \t\n\v\f\r\x1c\x1d\x1e\x1f", *s))
        return 1;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        if (strncmp(s, wide[i], strlen(wide[i])) == 0)
            return strlen(wide[i]);
    }
    bool quad = strncmp(s, "\xe2\x80", 2) == 0; /* U+2000 to U+200A */
    return quad && (unsigned char)s[2] >= 0x80 && (unsigned char)s[2] <= 0x8a ? 3 : 0;
}

static const char *code_wrong(const json_t *v) {
    const char *s = json_string_value(v);
    size_t len = json_string_length(v), characters = 0;
    while (space_len(s))
        s += space_len(s);
    if (*s == '\0')
        return "Code cannot be empty";
    s = json_string_value(v);
    for (size_t i = 0; i < len; i++)
        characters += ((unsigned char)s[i] & 0xc0) != 0x80;
    return characters > CODE_MAX ? "Code too large (max 1MB)" : NULL;
}

static const struct field run_fields[] = {
    {.name = "code",
     .type = FIELD_STRING,
     .flags = FIELD_REQUIRED | FIELD_LONG,
     .wrong = code_wrong,
     .help = "a Python program of at most 1,000,000 characters"},
    {.name = "timeout",
     .type = FIELD_INT,
     .flags = FIELD_NULLABLE | FIELD_LAX | FIELD_MIN | FIELD_MAX,
     .min = 1,
     .max = 300,
     .fallback = "30",
     .help = "seconds; null: the most"},
    {.name = "memory_limit",
     .type = FIELD_INT,
     .flags = FIELD_NULLABLE | FIELD_LAX | FIELD_MIN | FIELD_MAX,
     .min = 64,
     .max = 2048,
     .fallback = "512",
     .help = "MB; null: the most"},
    {.name = "auto_print",
     .type = FIELD_BOOL,
     .flags = FIELD_NULLABLE,
     .fallback = "true",
     .help = "print() the value of a last expression; null: no"},
};
static const struct schema pyrunner_schema = {
    .name = "PyRunnerRequest", .fields = run_fields, .n = 4, .untyped = true};

/* ---- the result ---- */

/* Behind what the program wrote itself, on a line of its own. */
static void add_line(struct rope *to, const struct blob *before, const char *text) {
    const struct buf *b = before ? &before->bytes : NULL;
    if (b && b->len && b->data[b->len - 1] != '\n')
        rope_adds_text(to, "\n");
    rope_adds_text(to, text);
}

/* What happened, in the words of PyRunner; adds to stderr what it says there. */
static const char *pyrunner_tell(const struct run *r, const struct receipt *t,
                                 const struct blob *before, struct rope *err) {
    char text[200];
    if (strcmp(t->status, "ok") == 0)
        return "success";
    if (strcmp(t->status, "timeout") == 0) {
        snprintf(text, sizeof text, "Execution timed out after %u seconds", t->timeout_ms / 1000);
        add_line(err, before, text);
        return "timeout";
    }
    if (strcmp(t->status, "memory_exceeded") == 0) {
        add_line(err, before, "Memory limit exceeded");
        return "memory_exceeded";
    }
    run_why(r, text, sizeof text);
    if (*text)
        add_line(err, before, text);
    return "error";
}

static void add_all(struct rope *to, struct blob *text) {
    rope_add_text(to, text, 0, text->bytes.len);
}

static double rounded(double v, double steps) {
    return round(v * steps) / steps;
}

static int pyrunner_put_reply(const struct oneshot_way *way, const struct oneshot *x,
                              struct rope *to) {
    AUTO_ROPE out = ROPE_INIT;
    AUTO_ROPE err = ROPE_INIT;
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    const struct run *r = oneshot_run(x);
    struct receipt t = run_receipt(r);
    (void)way;
    double seconds = rounded(t.wall_ms / 1e3, 1e3);
    if (!t.refused) {
        add_all(&out, run_text(r, 1));
        add_all(&err, run_text(r, 2));
    } else {
        rope_adds_text(&err, "Security validation failed: ");
        rope_adds_text(&err, t.refused);
        seconds = 0;
    }
    const char *status = pyrunner_tell(r, &t, t.refused ? NULL : run_text(r, 2), &err);
    if (strcmp(status, "timeout") == 0)
        seconds = t.timeout_ms / 1e3;
    jw_object(&j);
    jw_key_str(&j, "status", status);
    rope_key_texts(to, &j, "stdout", &out);
    rope_key_texts(to, &j, "stderr", &err);
    jw_key_real(&j, "execution_time", seconds);
    jw_key_real(&j, "memory_used", rounded((double)t.memory_peak / 1048576.0, 100));
    if (strcmp(status, "error") != 0)
        jw_key_null(&j, "error");
    else if (t.refused)
        jw_key_str(&j, "error", t.refused);
    else
        rope_key_texts(to, &j, "error", &err);
    jw_object_end(&j);
    rope_add(to, &json);
    return 200;
}

/* ---- the request ---- */

/* null asks for the most, an absent field for the default. False when it is more than the operator
 * allows. */
static bool read_limit(struct call *c, const char *name, uint32_t usual, uint32_t most,
                       uint32_t *ret) {
    bool absent = !json_object_get(c->body, name);
    int64_t v = field_int_lax(c->body, name, absent && usual < most ? usual : most);
    *ret = (uint32_t)v;
    if (v <= most)
        return true;
    AUTO_BUF reply = BUF_INIT;
    fields_too_high(c->body, name, most, &reply);
    call_add_error(&reply, 422);
    call_json(c, 422, &reply);
    return false;
}

static void do_pyrunner_run(struct call *c) {
    const struct config *cfg = c->api->config;
    uint32_t seconds, megabytes;
    if (!read_limit(c, "timeout", 30, cfg->pyrunner.timeout_s, &seconds) ||
        !read_limit(c, "memory_limit", 512, cfg->pyrunner.memory_mb, &megabytes))
        return;
    bool print = field_bool(c->body, "auto_print", !json_object_get(c->body, "auto_print"));
    json_auto_t *body = json_pack(
        "{s:O, s:I, s:b, s:s, s:{s:I, s:I, s:I}}", "code", json_object_get(c->body, "code"),
        "timeout_ms", (json_int_t)seconds * 1000, "last_line_interactive", 0, "policy",
        "restricted", "limits", "memory_mb", (json_int_t)megabytes, "cpu_seconds",
        (json_int_t)CPU_SECONDS, "output_bytes", (json_int_t)cfg->maxima.output_bytes);
    oneshot_wait(c, body,
                 &(struct oneshot_way){.flags = print ? RUN_LAST_PRINT : 0,
                                       .own_bounds = true,
                                       .put = pyrunner_put_reply});
}

/* ---- GET / ---- */

static bool has_module(const struct config *cfg, const char *name) {
    size_t len = strlen(name);
    for (unsigned i = 0; i < cfg->nprofiles; i++) {
        const struct config_list *l = &cfg->profiles[i].preload;
        for (unsigned k = 0; k < l->n && !cfg->profiles[i].removed; k++) {
            if (strcspn(l->items[k], ".") == len && strncmp(l->items[k], name, len) == 0)
                return true;
        }
    }
    return false;
}

static void put_about(const struct call *c, bool up, struct jw *j) {
    static const char *const libraries[] = {"sympy",      "numpy", "pandas",
                                            "matplotlib", "scipy", "sklearn"};
    const struct config *cfg = c->api->config;
    jw_key_str(j, "service", "PyRunner");
    jw_key_str(j, "status", up ? "healthy" : "unhealthy");
    jw_key(j, "capabilities");
    jw_object(j);
    jw_key_uint(j, "max_timeout", cfg->pyrunner.timeout_s);
    jw_key_uint(j, "max_memory_mb", cfg->pyrunner.memory_mb);
    jw_key(j, "libraries");
    jw_array(j);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        if (has_module(cfg, libraries[i]))
            jw_str(j, libraries[i]);
    }
    jw_array_end(j);
    jw_object_end(j);
}

static const struct field reply_fields[] = {
    HAS("status", FIELD_STRING, WORDS("success", "error", "timeout", "memory_exceeded")),
    HAS("stdout", FIELD_STRING),
    HAS("stderr", FIELD_STRING),
    HAS("execution_time", FIELD_REAL, .help = "seconds"),
    HAS("memory_used", FIELD_REAL, .help = "MB"),
    HAS_OR_NULL("error", FIELD_STRING),
};
static const struct schema reply_schema = {SCHEMA("PyRunnerReply", reply_fields)};

/* ---- routes ---- */

static void do_redoc(struct call *c) {
    http_add_header(c->req, "Location", "/docs");
    http_reply(c->req, 307, NULL, "", 0);
}

/* clang-format off */
static const struct route routes[] = {
    {{"POST", "/run", "PyRunner: run a program", "pyrunner", &pyrunner_schema, NULL, 200,
      "status, stdout, stderr, execution_time, memory_used, error", JSON_TYPE,
      .gives = &reply_schema, .errors = ERRORS_OF_PROGRAM, .replays = true}, do_pyrunner_run,
 .body_max = 64 * MB, .prepare = oneshot_prepare},
    {{.method = "GET", .path = "/redoc"}, do_redoc, .is_open = true, .is_free = true},
};
/* clang-format on */
static const struct route_table table = ROUTE_TABLE(routes);

const struct dialect pyrunner_dialect = {
    .name = "pyrunner",
    .help = "PyRunner's API",
    .tables = (const struct route_table *const[]){&table, NULL},
    .version = "1.0.0", /* what its clients have always seen */
    .up = "healthy",
    .down = "unhealthy",
    .put_about = put_about,
};
