/* A terminal in a live sandbox over a WebSocket: what its user types comes as binary messages (or
 * as {"type":"stdin","data"}), what it shows goes out as binary messages, and the command's object
 * as text when it is over. {"type":"resize","rows","cols"} changes its size. One sits at a terminal
 * at a time: whoever comes later takes the place. */

#include "api/core/quota.h"
#include "api/native/native.h"

#include "api/core/heard.h"
#include "api/core/inbox.h"
#include "api/jobs/cell_job.h"
#include "api/jobs/command_job.h"
#include "api/jobs/request_fields.h"
#include "api/native/commands.h"
#include "base/json.h"
#include "base/log.h"
#include "base/num.h"
#include "http/ws.h"
#include "http/ws_handshake.h"
#include "loop/crew.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 24
#define COLS 80

static const char *const types[] = {"stdin", "resize", NULL};
static const struct field message_fields[] = {
    {.name = "type", .type = FIELD_STRING, .flags = FIELD_REQUIRED, .words = types},
    {.name = "data", .type = FIELD_STRING, .flags = FIELD_LONG, .help = "of stdin: what is typed"},
    {.name = "rows", .type = FIELD_INT, .flags = FIELD_MIN | FIELD_MAX, .min = 1, .max = 1000},
    {.name = "cols", .type = FIELD_INT, .flags = FIELD_MIN | FIELD_MAX, .min = 1, .max = 1000},
};
static const struct schema message_schema = {"TerminalMessage", message_fields, 4, false};

static const char *const endings[] = {"hangup", "continue", NULL};
#define SIZE(what, usual)                                                                          \
    {                                                                                              \
        .name = what, .type = FIELD_INT, .flags = FIELD_MIN | FIELD_MAX, .min = 1, .max = 1000,    \
        .fallback = usual                                                                          \
    }
#define ENDING                                                                                     \
    { .name = "on_disconnect", .type = FIELD_STRING, .words = endings }
static const struct field pty_fields[] = {
    {.name = "cmd", .type = FIELD_STRING, .help = "a shell, if none is given"},
    FIELD_OF_CWD,
    SIZE("rows", "24"),
    SIZE("cols", "80"),
    ENDING,
};
static const struct schema pty_query = {"", pty_fields, 5, false};
static const struct field attach_fields[] = {SIZE("rows", NULL), SIZE("cols", NULL), ENDING};
static const struct schema attach_query = {"", attach_fields, 3, false};

struct seat {
    struct call *call;       /* borrowed: its owner */
    struct ws *ws;           /* borrowed: lives as long as the call */
    struct command *command; /* borrowed while we are called by it */
    bool goes_on;
    struct inbox in;
};

static void pty_on_bytes(void *arg, const void *data, size_t len) {
    struct seat *t = arg;
    ws_send_binary(t->ws, data, len);
    if (ws_backlog(t->ws) > HTTP_HIGH_WATER)
        command_hold(t->command, true);
}

/* The object, with its type as the first member. */
static void say(struct seat *t, const char *type, const struct buf *object) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_str(&j, "type", type);
    jw_members(&j, object->data, object->len);
    jw_object_end(&j);
    ws_send_text(t->ws, json.data, json.len);
}

static void pty_on_done(void *arg, struct command *c) {
    struct seat *t = arg;
    AUTO_BUF object = BUF_INIT;
    t->command = NULL;
    command_json(c, &object);
    say(t, "end", &object);
    ws_close(t->ws, WS_NORMAL, "");
}

static void pty_on_drain(void *arg) {
    const struct seat *t = arg;
    if (t->command)
        command_hold(t->command, false);
}

static void pty_fail(struct seat *t, const struct err *e) {
    struct problem p = problem_of(e);
    AUTO_BUF json = BUF_INIT;
    problem_json(&p, &json);
    say(t, "failed", &json);
}

/* What the client sends waits in its socket. */
static void pty_on_full(void *arg, bool is_full) {
    struct seat *t = arg;
    inbox_hold(&t->in, is_full);
}

static void pty_on_cost(void *arg, uint64_t cpu_ns) {
    const struct seat *t = arg;
    if (t->command)
        command_heard(t->command, cpu_ns);
}

static void typed(struct seat *t, const void *data, size_t len) {
    struct err e;
    if (t->command && len && command_stdin(t->command, data, len, &e) < 0)
        pty_fail(t, &e);
}

static void *pty_read_message(const void *data, size_t len, bool binary) {
    return heard_read(&message_schema, data, len, binary);
}

static void pty_take_heard(void *arg, void *message) {
    struct seat *t = arg;
    const struct heard *h = message;
    const json_t *m = h->json, *data = json_object_get(m, "data");
    if (h->data)
        typed(t, h->data, h->len);
    else if (!m)
        say(t, "failed", &h->reply);
    else if (strcmp(field_str(m, "type", ""), "stdin") == 0)
        typed(t, json_string_value(data), json_string_length(data));
    else if (t->command)
        command_resize(t->command, (uint32_t)field_int(m, "rows", ROWS),
                       (uint32_t)field_int(m, "cols", COLS));
}

static void pty_on_binary(void *arg, const void *data, size_t len) {
    struct seat *t = arg;
    inbox_add(&t->in, data, len, true);
}

static void pty_on_text(void *arg, const char *text, size_t len) {
    struct seat *t = arg;
    inbox_add(&t->in, text, len, false);
}

static void stand_up(struct seat *t) {
    struct command *c = t->command;
    t->command = NULL;
    if (!c)
        return;
    command_call(c, &(struct command_callbacks){0});
    command_hold(c, false);
    if (!t->goes_on)
        command_hang_up(c);
}

static void pty_on_closed(void *arg) {
    struct seat *t = arg;
    inbox_done(&t->in);
    stand_up(t);
}

static void free_seat(void *state) {
    struct seat *t = state;
    inbox_done(&t->in);
    free(t);
}

/* Another client took the place. */
static void on_replaced(void *arg) {
    struct seat *t = arg;
    t->command = NULL;
    ws_close(t->ws, WS_POLICY, "somebody else sat down at this terminal");
}

/* False when a reply was sent. `stays` is the default of the parameter. */
static bool sit_down(struct call *c, struct seat *t, bool stays) {
    const struct ws_options o = {.arg = t,
                                 .owner = crew_owner(c->who.tenant),
                                 .on_text = pty_on_text,
                                 .on_binary = pty_on_binary,
                                 .on_drain = pty_on_drain,
                                 .on_cost = pty_on_cost,
                                 .on_closed = pty_on_closed};
    const char *word = call_query(c, "on_disconnect");
    bool goes_on = word ? strcmp(word, "continue") == 0 : stays;
    if (!call_is_websocket(c, "POST to the sandbox's /commands"))
        return false;
    if (word && !goes_on && strcmp(word, "hangup") != 0) {
        call_bad_value(c, "leave it out to hang up", "on_disconnect is \"hangup\" or \"continue\"");
        return false;
    }
    t->call = c;
    t->goes_on = goes_on;
    c->state = t;
    c->state_done = free_seat;
    t->ws = ws_accept(c->req, &o);
    t->in = (struct inbox){.crew = c->api->o.engine->crew,
                           .owner = o.owner,
                           .ws = t->ws,
                           .arg = t,
                           .read = pty_read_message,
                           .take = pty_take_heard,
                           .drop = heard_drop,
                           .on_cost = pty_on_cost};
    return t->ws != NULL;
}

static struct command_callbacks callbacks(struct seat *t) {
    return (struct command_callbacks){.arg = t,
                                      .on_bytes = pty_on_bytes,
                                      .on_full = pty_on_full,
                                      .on_done = pty_on_done,
                                      .on_replaced = on_replaced};
}

static bool read_size(struct call *c, const char *name, uint32_t fallback, uint32_t *ret) {
    const struct num_rule rule = {name, 1, 1000};
    const char *text = call_query(c, name);
    struct err e;
    *ret = fallback;
    if (!text || num_u32(text, &rule, ret, &e) == 0)
        return true;
    call_bad_value(c, "rows and cols are from 1 to 1000", "%s", e.text);
    return false;
}

static char **argv_of(const char *cmd) {
    char **to = xcalloc(4, sizeof *to);
    to[0] = xstrdup("/bin/sh");
    to[1] = xstrdup("-c");
    to[2] = xstrdup(cmd);
    return to;
}

static void do_command_pty(struct call *c) {
    static const char usual[] = "if [ -x /bin/bash ]; then exec /bin/bash -i; fi; exec /bin/sh -i";
    struct live *l = call_live(c);
    const char *cmd = call_query(c, "cmd"), *cwd = call_query(c, "cwd");
    struct command_request q = {.stdin_open = true};
    struct problem p = {0};
    struct err e;
    if (!l || !read_size(c, "rows", ROWS, &q.rows) || !read_size(c, "cols", COLS, &q.columns))
        return;
    if (live_is_paused(l)) {
        call_refuse(c, "sandbox_paused", "the sandbox is paused");
        return;
    }
    if ((cmd && strlen(cmd) > 30000) || (cwd && strlen(cwd) > 4000)) {
        call_refuse(c, "bad_value", "cmd or cwd is too long");
        return;
    }
    if (command_may_start(l, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    if (quota_may_run(&c->who, &p) < 0) {
        call_problem(c, &p);
        return;
    }
    struct seat *t = xcalloc(1, sizeof *t);
    if (!sit_down(c, t, false)) {
        if (c->state != t)
            free(t);
        return;
    }
    q.stays = t->goes_on;
    q.argv = argv_of(cmd ? cmd : usual);
    q.shown = xstrdup(cmd ? cmd : "a shell");
    q.cwd = xstrdup(cwd ? cwd : "/workspace");
    command_asked_by(&q, &c->who);
    const struct command_callbacks cb = callbacks(t);
    if (command_new(l, &q, &cb, &t->command, &e) < 0) {
        command_request_done(&q);
        pty_fail(t, &e);
        ws_close(t->ws, WS_TRY_LATER, "the command could not be started");
        return;
    }
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_str(&j, "type", "start");
    jw_key_str(&j, "id", command_id(t->command));
    jw_object_end(&j);
    ws_send_text(t->ws, json.data, json.len);
    log_info("terminal sandbox=%s command=%s request=%s", live_id(l), command_id(t->command),
             c->who.request);
}

static void do_command_attach(struct call *c) {
    struct command *x = call_command(c);
    uint32_t rows, columns;
    if (!x || !read_size(c, "rows", 0, &rows) || !read_size(c, "cols", 0, &columns))
        return;
    if (!command_has_terminal(x) || !command_runs(x)) {
        call_refuse(c, "no_terminal", "the command is over, or has no terminal");
        return;
    }
    struct seat *t = xcalloc(1, sizeof *t);
    if (!sit_down(c, t, command_stays(x))) {
        if (c->state != t)
            free(t);
        return;
    }
    const struct buf *kept = command_kept(x);
    const struct command_callbacks cb = callbacks(t);
    t->command = x;
    command_set_stays(x, t->goes_on);
    command_call(x, &cb);
    command_hold(x, false); /* the client before may have held it */
    ws_send_binary(t->ws, kept->data, kept->len);
    if (rows && columns)
        command_resize(x, rows, columns);
}

static const struct field end_fields[] = {MESSAGE_TYPE("end")};
static const struct schema says_end = {SCHEMA("TerminalEnd", end_fields),
                                       .with = &command_view_schema};
static const struct field failed_fields[] = {MESSAGE_TYPE("failed")};
static const struct schema says_failed = {SCHEMA("TerminalFailed", failed_fields),
                                          .with = &error_schema};
static const struct schema sends_schema = {
    "TerminalEvent", ONE_OF(&says_end, &says_failed),
    .help = "as text; what the terminal shows comes as binary messages"};

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"GET", "/v1/sandboxes/{id}/commands/pty", "A command at a terminal, over a WebSocket: cmd, cwd, "
      "rows, cols of the query; keys as binary messages", "commands", NULL, NULL, 101, "a WebSocket",
      NULL, &pty_query, .takes = &message_schema, .sends = &sends_schema,
      .errors = ERRORS_OF_SANDBOX "sandbox_paused too_many_commands limit_too_high memory_budget "
                "too_much_cpu audit_unavailable"}, do_command_pty},
    {{"GET", "/v1/sandboxes/{id}/commands/{command_id}/pty", "Sit down at a command's terminal, over "
      "a WebSocket", "commands", NULL, NULL, 101, "a WebSocket", NULL,
      &attach_query, .takes = &message_schema, .sends = &sends_schema,
      .errors = ERRORS_OF_COMMAND "no_terminal command_over sandbox_paused"}, do_command_attach},
};
/* clang-format on */
const struct route_table command_pty_routes = ROUTE_TABLE(routes);
