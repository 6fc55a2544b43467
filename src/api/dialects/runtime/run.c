/* Sandbox Runtime: what runs in a session. A command is a line for bash, its args are arguments of
 * that line, as they are. Code becomes a file of the session first, and stays there.
 *
 * With output_params the script runs under cell/outputs.py, which writes the variables behind all
 * that the script wrote to stderr, with a mark in between that nobody can guess. */

#include "api/dialects/runtime/runtime.h"
#include "api/jobs/command_wait.h"
#include "api/jobs/inputs.h"
#include "base/fd.h"
#include "base/json_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ENV         "{\"HOME\":\"/workspace\",\"PYTHONPATH\":\"/workspace\"}"
#define OUTPUTS     "/run/cloche/cell/outputs.py"
#define ARGS_MAX    200
#define MAX_STRINGS 40000
#define TRUNCATED   "\n...[truncated]"
#define TIMED_OUT   124 /* as timeout(1) */

static const struct field execute_fields[] = {
    {.name = "command", .type = FIELD_STRING, .flags = FIELD_REQUIRED, .help = "for bash -c"},
    {.name = "args",
     .type = FIELD_LIST,
     .flags = FIELD_NULLABLE | FIELD_MAX,
     .max = ARGS_MAX,
     .fallback = "[]",
     .help = "arguments behind it, as they are"},
};
static const struct schema runtime_execute_schema = {"RuntimeExecute", execute_fields, 2, true};

static const struct field code_fields[] = {
    {.name = "code", .type = FIELD_STRING, .flags = FIELD_REQUIRED | FIELD_LONG},
    {.name = "filename",
     .type = FIELD_STRING,
     .flags = FIELD_NULLABLE,
     .fallback = "null",
     .help = "where it is kept; .py or .sh is added"},
    {.name = "args",
     .type = FIELD_LIST,
     .flags = FIELD_NULLABLE | FIELD_MAX,
     .max = ARGS_MAX,
     .fallback = "[]"},
    {.name = "script_type",
     .type = FIELD_STRING,
     .flags = FIELD_NULLABLE,
     .fallback = "\"python\"",
     .help = "python or shell"},
    {.name = "output_params",
     .type = FIELD_LIST,
     .flags = FIELD_NULLABLE | FIELD_MAX,
     .max = ARGS_MAX,
     .fallback = "[]",
     .help = "names of variables to give back; of Python only"},
};
static const struct schema runtime_code_schema = {"RuntimeCode", code_fields, 5, true};

/* ---- arguments ---- */

struct words {
    char *items[ARGS_MAX + 8]; /* owned */
    unsigned n;
    size_t total;
};

static void add_word(struct words *w, const char *text) {
    w->items[w->n++] = xstrdup(text);
    w->total += strlen(text) + 8;
}

static void add_args(struct words *w, const json_t *body) {
    size_t i;
    const json_t *v;
    json_array_foreach(json_object_get(body, "args"), i, v) add_word(w, json_string_value(v));
}

static void run(struct call *c, struct live *l, const struct words *w, const char *shown,
                const struct command_wait_options *o) {
    struct command_request q = {.argv = xcalloc(w->n + 1, sizeof *q.argv),
                                .shown = xstrdup(shown),
                                .cwd = xstrdup("/workspace"),
                                .env = xstrdup(ENV),
                                .timeout_ms = c->api->config->runtime.timeout_s * 1000};
    memcpy(q.argv, w->items, w->n * sizeof *q.argv);
    if (w->total <= MAX_STRINGS && !live_is_paused(l)) {
        command_wait(c, l, &q, o);
        return;
    }
    command_request_done(&q);
    if (w->total > MAX_STRINGS)
        runtime_error(c, 413, "bad_value",
                      "the command and its args have more than %d bytes: write them to a file",
                      MAX_STRINGS);
    else
        runtime_error(c, 409, "sandbox_paused", "the session's sandbox is paused");
}

/* ---- the result ---- */

/* How many of the first bytes are no white space at the end. */
static size_t stripped(const struct buf *text, size_t len, const char *white) {
    while (len > 0 && strchr(white, text->data[len - 1]))
        len--;
    return len;
}

/* stdout without the newlines at its end; of stderr the first bytes, without white space at their
 * end. */
static void strip(const struct command_end *end, size_t stderr_len, struct command_found *ret) {
    const struct buf *out = &end->text[0]->bytes;
    ret->len[0] = end->truncated[0] ? out->len : stripped(out, out->len, "\n");
    ret->len[1] = stripped(&end->text[1]->bytes, stderr_len, " \t\r\n");
}

static void look_at_streams(const struct command_end *end, const char *word,
                            struct command_found *ret) {
    (void)word;
    strip(end, end->text[1]->bytes.len, ret);
}

static void put_stdout(struct rope *to, struct jw *j, const struct command_end *end, size_t len) {
    AUTO_ROPE text = ROPE_INIT;
    rope_add_text(&text, end->text[0], 0, len);
    if (end->truncated[0])
        rope_adds_text(&text, TRUNCATED);
    rope_key_texts(to, j, "stdout", &text);
}

/* And then a newline, also when there is nothing. */
static void put_stderr(struct rope *to, struct jw *j, const struct call *c,
                       const struct command_end *end, size_t len) {
    AUTO_ROPE text = ROPE_INIT;
    rope_add_text(&text, end->text[1], 0, len);
    if (end->truncated[1])
        rope_adds_text(&text, TRUNCATED);
    if (end->timed_out) {
        char late[80];
        snprintf(late, sizeof late, "%sExecution timed out after %u seconds", text.n ? "\n" : "",
                 c->api->config->runtime.timeout_s);
        rope_adds_text(&text, late);
    }
    rope_adds_text(&text, "\n");
    rope_key_texts(to, j, "stderr", &text);
}

static void put_streams(struct rope *to, struct jw *j, const struct call *c,
                        const struct command_end *end, const struct command_found *found) {
    put_stdout(to, j, end, found->len[0]);
    put_stderr(to, j, c, end, found->len[1]);
    jw_key_int(j, "returncode", end->timed_out ? TIMED_OUT : end->exit_code);
}

static void reply_run(struct call *c, const struct command_end *end, struct command_found *found) {
    AUTO_ROPE reply = ROPE_INIT;
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    put_streams(&reply, &j, c, end, found);
    jw_object_end(&j);
    rope_add(&reply, &json);
    runtime_reply_rope(c, &reply);
}

/* ---- execute ---- */

static void execute(struct call *c, struct live *l) {
    const char *command = field_str(c->body, "command", "");
    AUTO_BUF line = BUF_INIT;
    struct words w = {.n = 0};
    buf_adds(&line, command);
    add_word(&w, "bash");
    add_word(&w, "-c");
    if (json_array_size(json_object_get(c->body, "args"))) {
        while (line.len > 0 && strchr(" \t\r\n", line.data[line.len - 1]))
            line.data[--line.len] = '\0';
        buf_adds(&line, " \"$@\"");
        add_word(&w, line.data);
        add_word(&w, "bash");
        add_args(&w, c->body);
    } else {
        add_word(&w, line.data);
    }
    run(c, l, &w, command,
        &(struct command_wait_options){.look = look_at_streams, .then = reply_run});
}

static void do_runtime_execute(struct call *c) {
    runtime_use(c, execute);
}

/* ---- execute_code ---- */

static bool is_shell(const struct call *c) {
    return strcmp(field_str(c->body, "script_type", "python"), "shell") == 0;
}

static bool wants_outputs(const struct call *c) {
    return json_array_size(json_object_get(c->body, "output_params")) > 0;
}

/* The mark of a request: its own id, which is random. */
static const char *mark_of(const struct call *c) {
    return c->who.request;
}

/* Where the last mark is; the length when there is none. */
static size_t find_mark(const struct buf *text, const char *mark) {
    size_t len = strlen(mark);
    for (size_t at = text->len < len ? 0 : text->len - len + 1; at > 0; at--) {
        if (memcmp(text->data + at - 1, mark, len) == 0)
            return at - 1;
    }
    return text->len;
}

static void look_at_outputs(const struct command_end *end, const char *mark,
                            struct command_found *ret) {
    const struct buf *err = &end->text[1]->bytes;
    size_t at = find_mark(err, mark);
    ret->at = at + strlen(mark);
    ret->is_good = at < err->len && end->exit_code == 0 && !end->truncated[1] &&
                   err->data[ret->at] == '{' &&
                   json_is_value(err->data + ret->at, err->len - ret->at);
    strip(end, at, ret);
}

static void reply_outputs(struct call *c, const struct command_end *end,
                          struct command_found *found) {
    AUTO_ROPE reply = ROPE_INIT, values = ROPE_INIT;
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    put_streams(&reply, &j, c, end, found);
    if (found->is_good)
        rope_add_part(&values, end->text[1], found->at, end->text[1]->bytes.len - found->at);
    else
        rope_adds(&values, "{}");
    rope_key_json(&reply, &j, "output_variables", &values);
    jw_object_end(&j);
    rope_add(&reply, &json);
    runtime_reply_rope(c, &reply);
}

static void run_script(struct call *c, struct live *l, const char *path) {
    struct words w = {.n = 0};
    AUTO_BUF file = BUF_INIT;
    AUTO_FREE char *names = field_dump(c->body, "output_params");
    bool outputs = !is_shell(c) && wants_outputs(c);
    buf_addf(&file, "%s%s", *path == '-' ? "./" : "", path);
    add_word(&w, is_shell(c) ? "bash" : "python3");
    if (outputs) {
        add_word(&w, OUTPUTS);
        add_word(&w, mark_of(c));
        add_word(&w, names);
    }
    add_word(&w, file.data);
    add_args(&w, c->body);
    static const struct command_wait_options plain = {.look = look_at_streams, .then = reply_run};
    const struct command_wait_options wanted = {
        .look = look_at_outputs, .word = mark_of(c), .then = reply_outputs};
    run(c, l, &w, path, wants_outputs(c) ? &wanted : &plain);
}

/* A name that no other has: two scripts may come within the same second. */
static void script_name(const struct call *c, const char *ending, struct buf *to) {
    const char *asked = field_str(c->body, "filename", "");
    if (*asked) {
        size_t len = strlen(asked), n = strlen(ending);
        bool has = len > n && strcmp(asked + len - n, ending) == 0;
        buf_addf(to, "%s%s", asked, has ? "" : ending);
    } else {
        buf_addf(to, "script_%lld_%.6s%s", (long long)time(NULL), strchr(c->who.request, '_') + 1,
                 ending);
    }
}

static void execute_code(struct call *c, struct live *l) {
    const json_t *code = json_object_get(c->body, "code");
    AUTO_BUF name = BUF_INIT;
    script_name(c, is_shell(c) ? ".sh" : ".py", &name);
    runtime_write(c, l,
                  &(struct runtime_file){.path = name.data,
                                         .data = json_string_value(code),
                                         .len = json_string_length(code),
                                         .mode = is_shell(c) ? 0755 : 0644,
                                         .then = run_script});
}

static void do_runtime_execute_code(struct call *c) {
    const char *type = field_str(c->body, "script_type", "python");
    if (strcmp(type, "python") != 0 && strcmp(type, "shell") != 0)
        runtime_error(c, 400, "bad_value",
                      "Unsupported script type: %.60s; it may be python or shell", type);
    else if (runtime_path_is_good(c, field_str(c->body, "filename", "")))
        runtime_use(c, execute_code);
}

static const struct field run_fields[] = {
    HAS("stdout", FIELD_STRING),
    HAS("stderr", FIELD_STRING),
    HAS("returncode", FIELD_INT),
};
RUNTIME_REPLY(run_reply, "RuntimeRun", run_fields);
static const struct field script_fields[] = {
    HAS("stdout", FIELD_STRING),
    HAS("stderr", FIELD_STRING),
    HAS("returncode", FIELD_INT),
    MAY_HAVE("output_variables", MAP_OF(FIELD_JSON), .help = "with output_params"),
};
RUNTIME_REPLY(script_reply, "RuntimeScript", script_fields);

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"POST", "/workspace/se/execute/{session_id}", "Run a command in a session", "sandbox-runtime",
      &runtime_execute_schema, NULL, 200, "its output and exit code", JSON_TYPE,
      .gives = &run_reply, .errors = ERRORS_OF_SESSION ERRORS_OF_WAIT "413:bad_value"},
     do_runtime_execute, .body_max = MB},
    {{"POST", "/workspace/se/execute_code/{session_id}", "Run a script in a session",
      "sandbox-runtime", &runtime_code_schema, NULL, 200, "its output and exit code", JSON_TYPE,
      .gives = &script_reply, .errors = ERRORS_OF_SESSION_FILE ERRORS_OF_WAIT "413:bad_value"},
     do_runtime_execute_code, .body_max = 64 * MB},
};
/* clang-format on */
const struct route_table runtime_run_routes = ROUTE_TABLE(routes);
