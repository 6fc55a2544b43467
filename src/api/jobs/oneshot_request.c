/* See oneshot_request.h. */

#include "api/jobs/oneshot_request.h"

#include "api/core/body.h"
#include "api/jobs/network_field.h"
#include "api/jobs/packages_field.h"
#include "api/jobs/request_fields.h"

#include <jansson.h>
#include <string.h>

#define INLINE_CODE BODY_LONG_TEXT /* bytes; more goes into a memfd: a message has WIRE_MAX */

/* ---- what a request may say ---- */

static const char *const policies[] = {"none", "restricted", NULL};

/* The fields of a program, which both kinds of request have. */
#define FIELDS_OF_WHAT                                                                             \
    {.name = "code",                                                                               \
     .type = FIELD_STRING,                                                                         \
     .flags = FIELD_REQUIRED | FIELD_LONG,                                                         \
     .help = "a Python program"},                                                                  \
        FIELD_OF_STDIN("what the program reads; null: nothing"), {                                 \
        .name = "timeout_ms", .type = FIELD_INT, .flags = FIELD_MIN, .min = 1, .fallback = "2000", \
        .help = "wall clock; an operator's own default is in /v1/info"                             \
    }
#define FIELDS_OF_WHERE                                                                            \
    FIELD_OF_FILES("files for the program"),                                                       \
        FIELD_OF_PROFILE("what is preloaded; auto chooses by the imports"),                        \
        FIELD_OF_ENV("environment variables"),                                                     \
        {.name = "args",                                                                           \
         .type = FIELD_LIST,                                                                       \
         .flags = FIELD_MAX,                                                                       \
         .max = RUN_MAX_ARGS,                                                                      \
         .help = "sys.argv[1:]"},                                                                  \
        FIELD_OF_LIMITS("up to the maxima"), FIELD_OF_NETWORK("what it may reach"),                \
        FIELD_OF_PACKAGES, {                                                                       \
        .name = "policy", .type = FIELD_STRING, .words = policies, .fallback = "\"none\"",         \
        .help =                                                                                    \
            "restricted: only harmless modules and calls; for order, the sandbox is for safety"    \
    }

static const struct field execute_fields[] = {
    FIELDS_OF_WHAT,
    {.name = "last_line_interactive",
     .type = FIELD_BOOL,
     .fallback = "true",
     .help = "print the value of a last expression, as a Python prompt does"},
    FIELDS_OF_WHERE,
    {.name = "figures",
     .type = FIELD_BOOL,
     .fallback = "false",
     .help = "plt.show() saves what it shows as files, figure-1.png and so on"},
    FIELD_OF_ON_DISCONNECT("what happens when the client goes away"),
};
const struct schema execute_schema = {"ExecuteRequest", execute_fields,
                                      sizeof execute_fields / sizeof *execute_fields, true};

#define FIELDS_OF_RUN                                                                              \
    FIELDS_OF_WHAT,                                                                                \
        {.name = "silent",                                                                         \
         .type = FIELD_BOOL,                                                                       \
         .fallback = "false",                                                                      \
         .help = "the value of a last expression is not shown"},                                   \
        FIELDS_OF_WHERE, FIELD_OF_FORMATS,                                                         \
        FIELD_OF_ON_DISCONNECT("what happens when the client goes away")

static const struct field run_fields[] = {FIELDS_OF_RUN};
const struct schema run_schema = {"RunRequest", run_fields, sizeof run_fields / sizeof *run_fields,
                                  false};

/* As a message, which may have the type of one to a live sandbox. */
static const char *const message_types[] = {"execute", NULL};
static const struct field run_message_fields[] = {
    {.name = "type", .type = FIELD_STRING, .words = message_types, .fallback = "\"execute\""},
    {.name = "allow_stdin",
     .type = FIELD_BOOL,
     .fallback = "false",
     .help =
         "input() and getpass() tell that they wait, by `input`; else their prompts are output"},
    FIELDS_OF_RUN,
};
const struct schema run_message_schema = {"RunMessage", run_message_fields,
                                          sizeof run_message_fields / sizeof *run_message_fields,
                                          false};

/* ---- what it says ---- */

/* Of RUN_PNG and its followers. */
static uint32_t formats_of(const json_t *body) {
    const json_t *list = json_object_get(body, "formats"), *name;
    uint32_t flags = 0;
    size_t i;
    json_array_foreach(list, i, name) {
        for (unsigned n = 0; figure_formats[n]; n++)
            flags |= strcmp(figure_formats[n], json_string_value(name)) == 0 ? RUN_PNG << n : 0;
    }
    return flags ? flags : RUN_PNG; /* none are the default, as in a cell */
}

static uint32_t flags_of(const struct oneshot_options *o) {
    const json_t *body = o->body, *in = json_object_get(body, "stdin");
    uint32_t flags = o->flags | (o->no_files ? 0 : RUN_FILES);
    if (o->on_stdin || (json_is_string(in) && json_string_length(in)))
        flags |= RUN_STDIN;
    if (strcmp(field_str(body, "policy", "none"), "restricted") == 0)
        flags |= RUN_RESTRICTED;
    if (o->on_stdin && field_bool(body, "allow_stdin", false))
        flags |= RUN_ASKS;
    if (o->shows)
        return flags | RUN_SHOWN | formats_of(body) |
               (field_bool(body, "silent", false) ? 0 : RUN_VALUE);
    if (field_bool(body, "last_line_interactive", true))
        flags |= RUN_LAST_LINE;
    if (field_bool(body, "figures", false))
        flags |= RUN_FIGURES;
    return flags;
}

static size_t strings_size(const json_t *args, json_t *env) {
    const json_t *v;
    json_t *value;
    const char *key;
    size_t i, total = 0;
    json_array_foreach(args, i, v) total += json_string_length(v);
    json_object_foreach(env, key, value) total += strlen(key) + 1 + json_string_length(value);
    return total;
}

static int add_strings(struct run_request *q, const json_t *body, struct problem *p) {
    const json_t *args = json_object_get(body, "args"), *v;
    json_t *env = json_object_get(body, "env"), *value;
    const char *key;
    size_t i;
    if (strings_size(args, env) > RUN_MAX_STRINGS)
        return problem_set(p, "bad_value", "args and env have more than %u bytes together",
                           RUN_MAX_STRINGS);
    q->args = xcalloc(json_array_size(args) + 1, sizeof *q->args);
    json_array_foreach(args, i, v) {
        q->args[q->nargs++] = xstrdup(json_string_value(v));
    }
    q->env = xcalloc(json_object_size(env) + 1, sizeof *q->env);
    json_object_foreach(env, key, value) {
        struct buf b = BUF_INIT;
        if (*key == '\0' || strchr(key, '='))
            return problem_set(p, "bad_value", "a name in env is empty or holds a '='");
        buf_addf(&b, "%s=%s", key, json_string_value(value));
        q->env[q->nenv++] = buf_take(&b);
    }
    return 0;
}

static int add_code(const struct oneshot_options *o, struct run_request *q, struct problem *p) {
    const json_t *code = json_object_get(o->body, "code");
    const char *text = json_string_value(code);
    size_t len = json_string_length(code);
    struct err e;
    if (len > RUN_MAX_CODE)
        return problem_set(p, "code_too_long", "the program has more than 16 MiB");
    if (len > INLINE_CODE) {
        if (body_memfd(o->large, code, &q->code_fd, &e) == 0)
            return 0;
        *p = problem_of(&e);
        return -1;
    }
    q->code_len = len;
    q->code = xmalloc(len + 1);
    memcpy(q->code, text, len);
    return 0;
}

static int oneshot_read_network(const struct caller *who, const struct oneshot_options *o,
                                struct network_terms **ret, struct problem *p) {
    return o->all_network ? network_all(who, ret, p) : network_read(who, o->body, ret, p);
}

int oneshot_read_request(const struct caller *who, const struct oneshot_options *o,
                         struct run_request *q, struct problem *p) {
    const json_t *body = o->body;
    uint32_t longest = o->own_bounds ? UINT32_MAX : who->api->config->maxima.timeout_ms;
    const struct inputs_source files = {.who = who, .request = body, .large = o->large};
    *q = (struct run_request){.flags = flags_of(o),
                              .code_fd = -1,
                              .tenant = xstrdup(who->tenant),
                              .own_bounds = o->own_bounds};
    if (limits_read(body, longest, &q->limits, p) < 0 ||
        oneshot_read_network(who, o, &q->network, p) < 0 ||
        inputs_read(&files, &q->inputs, &q->ninputs, p) < 0)
        return -1;
    q->profile = xstrdup(field_str(body, "profile", "auto"));
    if (add_strings(q, body, p) < 0 || packages_read(who, body, q, p) < 0)
        return -1;
    return add_code(o, q, p);
}
