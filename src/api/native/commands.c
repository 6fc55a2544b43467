/* /v1/sandboxes/{id}/commands: shell lines and programs in a live sandbox. */

#include "api/native/commands.h"

#include "api/core/pages.h"
#include "api/jobs/cell_job.h"
#include "api/jobs/command_job.h"
#include "api/jobs/event_schemas.h"
#include "api/jobs/events.h"
#include "api/jobs/job_wait.h"
#include "api/jobs/records.h"
#include "api/jobs/request_fields.h"
#include "api/native/native.h"
#include "base/log.h"
#include "base/num.h"

#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STRINGS 40000u /* bytes of arguments and environment together */
#define MAX_ARGS    1000
#define TIMEOUT_MS  30000

static const struct field command_fields[] = {
    {.name = "cmd",
     .type = FIELD_STRING,
     .flags = FIELD_REQUIRED,
     .unless = "argv",
     .help = "a line for the shell"},
    {.name = "argv",
     .type = FIELD_LIST,
     .flags = FIELD_MIN | FIELD_MAX,
     .min = 1,
     .max = MAX_ARGS,
     .help = "a program and its arguments, instead of cmd"},
    FIELD_OF_CWD,
    FIELD_OF_ENV(NULL),
    FIELD_OF_STDIN(NULL),
    {.name = "timeout_ms",
     .type = FIELD_INT,
     .flags = FIELD_MIN | FIELD_MAX,
     .min = 0,
     .max = INT32_MAX,
     .help = "then it is killed; 30000 unless it is in the background, where 0, none, is usual"},
    {.name = "background",
     .type = FIELD_BOOL,
     .fallback = "false",
     .help = "reply when it has begun; its stdin stays open"},
    {.name = "output_bytes",
     .type = FIELD_INT,
     .flags = FIELD_MIN,
     .min = 1,
     .help = "kept of each stream"},
    FIELD_OF_ON_DISCONNECT("what happens when the client goes away: it is killed, or goes on"),
};
static const struct schema command_schema = {"CommandRequest", command_fields, 9, false};

static const struct field feed_fields[] = {
    {.name = "data", .type = FIELD_STRING, .flags = FIELD_LONG, .help = "for its stdin"},
    {.name = "eof", .type = FIELD_BOOL, .fallback = "false", .help = "and that is all"},
};
static const struct schema feed_schema = {"FeedRequest", feed_fields, 2, false};

static const struct field signal_fields[] = {
    {.name = "signal",
     .type = FIELD_STRING,
     .flags = FIELD_REQUIRED | FIELD_OR_INT,
     .help = "SIGTERM or the like, or its number; to all of its process group"},
};
static const struct schema signal_schema = {"SignalRequest", signal_fields, 1, false};

/* ---- the request ---- */

static char **copy_list(const json_t *list) {
    char **to = xcalloc(json_array_size(list) + 1, sizeof *to);
    size_t i;
    const json_t *v;
    json_array_foreach(list, i, v) to[i] = xstrdup(json_string_value(v));
    return to;
}

/* Bytes of its words and of the environment, as the kernel's message has them. */
static size_t strings_size(const json_t *body) {
    const json_t *env = json_object_get(body, "env"), *v;
    size_t i, total = json_string_length(json_object_get(body, "cmd")) + 16;
    json_array_foreach(json_object_get(body, "argv"), i, v) total += json_string_length(v) + 8;
    return total + (json_is_object(env) ? json_dumpb(env, NULL, 0, JSON_COMPACT) : 0);
}

static char **shell_line(const char *line) {
    char **to = xcalloc(4, sizeof *to);
    to[0] = xstrdup("/bin/sh");
    to[1] = xstrdup("-c");
    to[2] = xstrdup(line);
    return to;
}

static char *joined(char *const *argv) {
    struct buf b = BUF_INIT;
    for (; *argv; argv++)
        buf_addf(&b, "%s%s", b.len ? " " : "", *argv);
    return buf_take(&b);
}

static int command_read(const json_t *body, struct command_request *q, struct problem *p) {
    const char *cmd = field_str(body, "cmd", NULL);
    json_t *in = json_object_get(body, "stdin");
    bool background = field_bool(body, "background", false);
    *q = (struct command_request){0};
    if (cmd && json_object_get(body, "argv"))
        return problem_set(p, "bad_value", "cmd and argv: give one of them");
    if (env_check(body, p) < 0 || cwd_check(body, p) < 0)
        return -1;
    if (strings_size(body) > MAX_STRINGS)
        return problem_set(p, "bad_value",
                           "the arguments and the environment have more than 40000 bytes; "
                           "write them to a file");
    q->argv = cmd ? shell_line(cmd) : copy_list(json_object_get(body, "argv"));
    q->env = field_dump(body, "env");
    q->shown = cmd ? xstrdup(cmd) : joined(q->argv);
    q->cwd = xstrdup(field_str(body, "cwd", "/workspace"));
    q->stdin_text = json_is_string(in) ? json_incref(in) : NULL; /* it is not copied */
    q->stdin_open = background;
    q->timeout_ms = (uint32_t)field_int(body, "timeout_ms", background ? 0 : TIMEOUT_MS);
    q->output_bytes = (uint64_t)field_int(body, "output_bytes", 0);
    if (!q->argv[0][0])
        return problem_set(p, "bad_value", "argv: the program's name is empty");
    if (q->timeout_ms == 0 && !background)
        return problem_set(p, "bad_value", "timeout_ms of 0, no limit, is for background commands");
    if (strlen(q->cwd) >= PATH_MAX)
        return problem_set(p, "bad_value", "cwd is longer than a path can be");
    return 0;
}

static int commands_start(struct call *c, const struct command_job_options *o,
                          struct command_job **ret, struct problem *p) {
    struct command_request q;
    struct command_job_options own = *o;
    if (live_is_paused(o->live))
        return problem_set(p, "sandbox_paused", "the sandbox is paused");
    if (strcmp(field_str(c->body, "on_disconnect", "interrupt"), "continue") == 0)
        own.goes_on = true;
    own.request = &q;
    int r = command_read(c->body, &q, p);
    if (r == 0)
        r = command_job_start(&c->who, &own, ret, p);
    if (r < 0)
        command_request_done(&q);
    return r;
}

static void commands_wait_leave(void *job) {
    command_job_leave(job);
}

static void commands_wait_on_done(void *arg, struct rope *result) {
    struct job_wait *w = arg;
    outlet_rope(&w->out, 200, result, NULL);
    job_wait_over(w);
}

static void run_whole(struct call *c, struct live *l) {
    struct problem p = {0};
    struct command_job *x;
    struct job_wait *w = job_wait_new(c, sizeof *w, commands_wait_leave);
    if (!w)
        return;
    if (commands_start(
            c, &(struct command_job_options){.live = l, .on_done = commands_wait_on_done, .arg = w},
            &x, &p) < 0)
        outlet_problem(&w->out, &p);
    else
        w->job = x;
}

static void background_over(struct job_wait *w, struct rope *result) {
    outlet_rope(&w->out, 202, result, NULL);
    job_wait_over(w);
}

static void background_on_start(void *arg, struct command *x) {
    AUTO_ROPE json = ROPE_INIT;
    command_result(x, &json);
    background_over(arg, &json);
}

static void background_on_done(void *arg, struct rope *result) {
    background_over(arg, result);
}

/* The reply waits until the program has been told to begin: from then on it outlives the server,
 * and the next one knows of it. */
static void run_background(struct call *c, struct live *l) {
    struct problem p = {0};
    struct command_job *x;
    struct job_wait *w = job_wait_new(c, sizeof *w, commands_wait_leave);
    if (!w)
        return;
    const struct command_job_options o = {.live = l,
                                          .goes_on = true,
                                          .on_start = background_on_start,
                                          .on_done = background_on_done,
                                          .arg = w};
    if (commands_start(c, &o, &x, &p) < 0)
        outlet_problem(&w->out, &p);
    else
        w->job = x;
}

static void run_stream(struct call *c, struct live *l, enum events_form form) {
    struct problem p = {0};
    struct outlet out;
    struct command_job *x;
    if (!outlet_open(c, &out))
        return;
    if (commands_start(c, &(struct command_job_options){.live = l, .goes_on = out.replay}, &x, &p) <
        0) {
        outlet_problem(&out, &p);
        outlet_done(&out);
        return;
    }
    outlet_refer(&out, command_id(command_job_command(x)));
    outlet_done(&out);
    const struct events_source from = command_job_source(x);
    events_stream(c, command_job_record(x), form, 0, &from);
}

static void do_command_new(struct call *c) {
    struct live *l = call_live(c);
    enum events_form form = events_wanted(c);
    if (!l)
        return;
    if (field_bool(c->body, "background", false))
        run_background(c, l);
    else if (form == EVENTS_NONE)
        run_whole(c, l);
    else
        run_stream(c, l, form);
}

/* ---- one command ---- */

struct command *call_command(struct call *c) {
    struct live *l = call_live(c);
    struct err e;
    struct command *x = l ? command_find(l, c->params[1], &e) : NULL;
    if (l && !x)
        call_fail(c, &e);
    return x;
}

static void do_commands(struct call *c) {
    struct live *l = call_live(c);
    struct page_walk w;
    if (!l || !page_walk(c, "commands", &w))
        return;
    for (struct command *x = command_next(l, NULL); x; x = command_next(l, x)) {
        struct buf *to = page_place(&w, command_id(x));
        if (to)
            command_listed(x, to, &w.before);
    }
    page_reply(c, &w);
}

static void commands_reply_with(struct call *c, struct command *x) {
    AUTO_BUF json = BUF_INIT;
    command_json(x, &json);
    call_json(c, 200, &json);
}

static void do_command(struct call *c) {
    struct command *x = call_command(c);
    AUTO_ROPE json = ROPE_INIT;
    if (!x)
        return;
    command_result(x, &json);
    http_reply_rope(c->req, 200, "application/json", &json);
}

static void do_command_delete(struct call *c) {
    struct command *x = call_command(c);
    if (!x)
        return;
    command_delete(x);
    http_reply(c->req, 204, NULL, "", 0);
}

static void do_command_events(struct call *c) {
    const struct command *x = call_command(c);
    struct record *rec = x ? records_find(c->api->records, c->who.tenant, command_id(x)) : NULL;
    enum events_form form = events_wanted(c);
    uint64_t after;
    if (!x || !events_after(c, &after))
        return;
    if (!rec) {
        call_refuse(c, "no_events", "the events of this command are forgotten");
        return;
    }
    events_stream(c, rec, form == EVENTS_LINES ? form : EVENTS_SSE, after,
                  &(struct events_source){0});
}

static void do_command_stdin(struct call *c) {
    struct command *x = call_command(c);
    const char *data = field_str(c->body, "data", "");
    struct err e;
    if (!x)
        return;
    if ((*data && command_stdin(x, data, strlen(data), &e) < 0) ||
        (field_bool(c->body, "eof", false) && command_stdin(x, NULL, 0, &e) < 0))
        call_fail(c, &e);
    else
        commands_reply_with(c, x);
}

/* "SIGTERM", "TERM" or "15". */
static int signal_named(const char *word) {
    static const struct num_rule rule = {"signal", 1, 31};
    uint32_t n;
    struct err e;
    if (num_u32(word, &rule, &n, &e) == 0)
        return (int)n;
    if (strncmp(word, "SIG", 3) == 0)
        word += 3;
    for (int i = 1; i < 32; i++) {
        const char *name = sigabbrev_np(i);
        if (name && strcmp(name, word) == 0)
            return i;
    }
    return -1;
}

static int signal_wanted(const json_t *body, char *shown, size_t cap) {
    const json_t *v = json_object_get(body, "signal");
    int64_t n = json_integer_value(v);
    if (json_is_string(v)) {
        snprintf(shown, cap, "%.40s", json_string_value(v));
        return signal_named(json_string_value(v));
    }
    snprintf(shown, cap, "%lld", (long long)n);
    return n >= 1 && n <= 31 ? (int)n : -1;
}

static void do_command_signal(struct call *c) {
    struct command *x = call_command(c);
    char word[48];
    int number = signal_wanted(c->body, word, sizeof word);
    struct err e;
    if (!x)
        return;
    if (number < 0) {
        char text[120];
        snprintf(text, sizeof text, "signal: there is no signal \"%s\"", word);
        call_bad_value(c, "a name as SIGTERM, or 1 to 31", "%s", text);
    } else if (command_signal(x, number, &e) < 0) {
        call_fail(c, &e);
    } else {
        commands_reply_with(c, x);
    }
}

static const struct field list_fields[] = {
    HAS("commands", LIST_OF(command_view_schema)),
    PAGE_NEXT,
};
static const struct schema list_schema = {SCHEMA("CommandList", list_fields)};

static const struct api_reply started[] = {
    {202, "the command, which goes on in the background", JSON_TYPE, &command_result_schema}, {0}};

#define ERRORS_OF_NEW                                                                              \
    ERRORS_OF_SANDBOX                                                                              \
    "sandbox_paused too_many_commands limit_too_high memory_budget too_much_cpu "                  \
    "audit_unavailable sandbox_busy stdin_full "

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"POST", "/v1/sandboxes/{id}/commands", "Run a command", "commands", &command_schema, NULL, 200,
      "the command with its output, or a stream of events as the Accept header asks; 202 when it is "
      "in the background", JSON_TYPE, .gives = &command_result_schema,
      .events = &command_events_schema, .errors = ERRORS_OF_NEW, .replays = true,
      .more = started}, do_command_new, .body_max = 16 * MB},
    {{"GET", "/v1/sandboxes/{id}/commands", "List commands", "commands", NULL, NULL, 200,
      "the commands", JSON_TYPE, &pages_query, .gives = &list_schema, .errors = ERRORS_OF_SANDBOX}, do_commands},
    {{"GET", "/v1/sandboxes/{id}/commands/{command_id}", "Look at a command", "commands", NULL, NULL,
      200, "the command with its output so far", JSON_TYPE, .gives = &command_result_schema,
      .errors = ERRORS_OF_COMMAND}, do_command},
    {{"DELETE", "/v1/sandboxes/{id}/commands/{command_id}", "Kill and forget a command", "commands",
      NULL, NULL, 204, "nothing", NULL, .errors = ERRORS_OF_COMMAND}, do_command_delete},
    {{"GET", "/v1/sandboxes/{id}/commands/{command_id}/events", "Follow a command", "commands", NULL,
      NULL, 200, "the events after number `after`", NULL, &events_query,
      .events = &command_events_schema, .errors = ERRORS_OF_COMMAND "no_events"}, do_command_events},
    {{"POST", "/v1/sandboxes/{id}/commands/{command_id}/signal", "Send a signal", "commands",
      &signal_schema, NULL, 200, "the command", JSON_TYPE, .gives = &command_view_schema,
      .errors = ERRORS_OF_COMMAND "command_over sandbox_paused"}, do_command_signal, .body_max = MB},
    {{"POST", "/v1/sandboxes/{id}/commands/{command_id}/stdin", "Feed a background command",
      "commands", &feed_schema, NULL, 200, "the command", JSON_TYPE, .gives = &command_view_schema,
      .errors = ERRORS_OF_COMMAND "command_over sandbox_paused stdin_closed stdin_full"}, do_command_stdin,
     .body_max = 2 * MB},
};
/* clang-format on */
const struct route_table commands_routes = ROUTE_TABLE(routes);
