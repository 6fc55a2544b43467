/* GET /v1/execute/stream and GET /v1/run as WebSockets: a program whose stdin stays open. The
 * client's first message is what the POST takes; then both talk: events as JSON to the client, what
 * its user types to the program. The result is the last message. Of a /v1/run the events are those
 * of its record, in the words of live cells.
 *
 * Neither side can make us keep much: while the client does not read, the program's output is left
 * in its pipe (oneshot_hold), and while the program does not read, the client's messages are left
 * in its socket (ws_hold). */

#include "api/jobs/event_schemas.h"
#include "api/native/native.h"

#include "api/core/heard.h"
#include "api/core/inbox.h"
#include "api/jobs/oneshot.h"
#include "api/jobs/records.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "base/utf8_stream.h"
#include "engine/live/live.h"
#include "http/ws.h"
#include "http/ws_handshake.h"
#include "loop/crew.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct talk {
    struct call *call;   /* borrowed: its owner */
    struct ws *ws;       /* borrowed: lives as long as the call */
    struct oneshot *job; /* borrowed while it runs */
    struct timer late;   /* until the first message has come */
    bool begun;          /* the request came, or was refused: no message is one any more */
    bool shows;          /* it is a /v1/run: */
    struct follower f;   /* of its record */
    char id[ID_MAX];     /* of the execution; "" before there is one */
    struct inbox in;
};

/* ---- to the client ---- */

/* `json` is an object; `number` that of the event in the execution's record, 0: it is in none. */
static void talk_tell(struct talk *t, const char *type, uint64_t number, const struct buf *json) {
    AUTO_BUF text = BUF_INIT;
    struct jw j = JW_INIT(&text);
    jw_object(&j);
    jw_key_str(&j, "type", type);
    if (number)
        jw_key_uint(&j, "seq", number);
    if (*t->id)
        jw_key_str(&j, "execution_id", t->id);
    jw_members(&j, json->data, json->len);
    jw_object_end(&j);
    ws_send_text(t->ws, text.data, text.len);
}

static enum ws_code code_for(int status) {
    if (status == 503 || status == 429)
        return WS_TRY_LATER;
    return status >= 500 ? WS_INTERNAL : WS_POLICY;
}

static void talk_fail(struct talk *t, const struct problem *p, uint64_t number) {
    AUTO_BUF json = BUF_INIT;
    call_refused(t->call->api, p);
    problem_json(p, &json);
    talk_tell(t, t->shows ? "failed" : "error", number, &json);
    ws_close(t->ws, code_for(p->status), p->code);
}

static void talk_on_start(void *arg, uint64_t number, const char *id) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_str(&j, "id", id);
    jw_object_end(&j);
    talk_tell(arg, "start", number, &json);
}

static void talk_on_output(void *arg, int stream, uint64_t number, const char *data, size_t len) {
    struct talk *t = arg;
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_str(&j, "stream", stream == 1 ? "stdout" : "stderr");
    jw_key(&j, "data");
    jw_strn(&j, data, len);
    jw_object_end(&j);
    talk_tell(t, "output", number, &json);
    if (t->job && ws_backlog(t->ws) > HTTP_HIGH_WATER)
        oneshot_hold(t->job, true);
}

static void talk_on_drain(void *arg) {
    struct talk *t = arg;
    if (t->job)
        oneshot_hold(t->job, false);
}

static void talk_on_event(struct follower *f, uint64_t number, const char *type, const char *json,
                          size_t len) {
    struct talk *t = f->arg;
    if (!type)
        return; /* talk_on_done is next */
    talk_tell(t, type, number, &(struct buf){.data = (char *)json, .len = len});
    if (t->job && ws_backlog(t->ws) > HTTP_HIGH_WATER)
        oneshot_hold(t->job, true);
}

static void talk_follow(struct talk *t) {
    static const struct buf nothing = {.data = (char *)"{}", .len = 2};
    snprintf(t->id, sizeof t->id, "%s", oneshot_id(t->job));
    talk_tell(t, "accepted", 0, &nothing);
    t->f = (struct follower){.is_first = true, .fn = talk_on_event, .arg = t};
    record_follow(oneshot_record(t->job), &t->f);
}

/* The record of a /v1/run has told everything. */
static void talk_failed(struct talk *t, const struct oneshot *x, const struct err *why) {
    struct problem p = problem_of(why);
    if (p.status == 500)
        log_error("request failed id=%s error=%s", t->call->who.request, log_text(why->text));
    if (!t->shows) {
        talk_fail(t, &p, oneshot_last(x));
        return;
    }
    call_refused(t->call->api, &p);
    ws_close(t->ws, code_for(p.status), p.code);
}

static void talk_on_done(void *arg, struct oneshot *x, const struct err *why) {
    struct talk *t = arg;
    t->job = NULL;
    if (why) {
        talk_failed(t, x, why);
        return;
    }
    if (!t->shows)
        talk_tell(t, "result", oneshot_last(x), oneshot_end(x));
    ws_close(t->ws, WS_NORMAL, "");
}

/* ---- to the program ---- */

static void talk_on_stdin(void *arg) {
    struct talk *t = arg;
    if (t->job && oneshot_stdin_backlog(t->job) < HTTP_LOW_WATER)
        inbox_hold(&t->in, false);
}

static void talk_give(struct talk *t, const char *data, size_t len) {
    if (len)
        oneshot_stdin(t->job, data, len);
    if (t->job && oneshot_stdin_backlog(t->job) > HTTP_HIGH_WATER)
        inbox_hold(&t->in, true);
}

static const struct {
    const char *name;
    int number;
} signals[] = {
    {"SIGINT", SIGINT},   {"SIGTERM", SIGTERM}, {"SIGKILL", SIGKILL}, {"SIGHUP", SIGHUP},
    {"SIGUSR1", SIGUSR1}, {"SIGUSR2", SIGUSR2}, {"SIGQUIT", SIGQUIT},
};
static const char *const signal_names[] = {"SIGINT",  "SIGTERM", "SIGKILL", "SIGHUP",
                                           "SIGUSR1", "SIGUSR2", "SIGQUIT", NULL};
static const char *const types[] = {"stdin", "stdin_end", "interrupt", "signal", NULL};

/* The last two are for /v1/run, as live sandboxes have them. */
static const struct field message_fields[] = {
    {.name = "type", .type = FIELD_STRING, .flags = FIELD_REQUIRED, .words = types},
    {.name = "data",
     .type = FIELD_STRING,
     .flags = FIELD_LONG,
     .help = "of stdin: what the program reads next"},
    {.name = "signal", .type = FIELD_STRING, .words = signal_names, .fallback = "\"SIGINT\""},
    {.name = "value", .type = FIELD_STRING, .flags = FIELD_LONG, .help = "of stdin: the next line"},
    {.name = "eof", .type = FIELD_BOOL, .fallback = "false", .help = "of stdin: there is no more"},
};
static const struct schema message_schema = {"StreamMessage", message_fields, 3, false};
static const struct schema run_talk_schema = {"RunStreamMessage", message_fields, 5, false};

static void send_signal(struct talk *t, const char *name) {
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        if (strcmp(signals[i].name, name) == 0) {
            oneshot_signal(t->job, signals[i].number);
            return;
        }
    }
}

static void talk_take_stdin(struct talk *t, const json_t *m) {
    static const struct problem nothing = {.status = 422,
                                           .code = "bad_fields",
                                           .message = "a message of type stdin has no data",
                                           .remediation = "put the text for the program into data"};
    const json_t *data = json_object_get(m, "data"), *line = json_object_get(m, "value");
    if (data) {
        talk_give(t, json_string_value(data), json_string_length(data));
    } else if (line) {
        talk_give(t, json_string_value(line), json_string_length(line));
        talk_give(t, "\n", 1);
    } else if (field_bool(m, "eof", false)) {
        oneshot_stdin(t->job, NULL, 0);
    } else {
        talk_fail(t, &nothing, 0);
    }
}

static void talk_take_message(struct talk *t, const json_t *m) {
    const char *type = field_str(m, "type", "");
    if (strcmp(type, "stdin") == 0)
        talk_take_stdin(t, m);
    else if (strcmp(type, "stdin_end") == 0)
        oneshot_stdin(t->job, NULL, 0);
    else
        send_signal(t, strcmp(type, "signal") == 0 ? field_str(m, "signal", "SIGINT") : "SIGINT");
}

/* ---- from the client ---- */

static struct loop *loop_of(const struct talk *t) {
    return t->call->api->o.loop;
}

static void talk_begin(struct talk *t, const json_t *body) {
    struct problem p = {0};
    const struct oneshot_options o = {.body = body,
                                      .arg = t,
                                      .shows = t->shows,
                                      .on_start = t->shows ? NULL : talk_on_start,
                                      .on_output = t->shows ? NULL : talk_on_output,
                                      .on_stdin = talk_on_stdin,
                                      .on_done = talk_on_done};
    t->begun = true;
    loop_timer_stop(loop_of(t), &t->late);
    if (oneshot_start(&t->call->who, &o, &t->job, &p) < 0) {
        talk_fail(t, &p, 0);
        return;
    }
    if (t->shows)
        talk_follow(t);
    talk_give(t, "", 0);
}

static void *talk_read_request(const void *data, size_t len, bool binary) {
    return heard_read(&execute_schema, data, len, binary);
}

static void *talk_read_run(const void *data, size_t len, bool binary) {
    return heard_read(&run_message_schema, data, len, binary);
}

static void *talk_read_run_message(const void *data, size_t len, bool binary) {
    return heard_read(&run_talk_schema, data, len, binary);
}

static void *talk_read_message(const void *data, size_t len, bool binary) {
    return heard_read(&message_schema, data, len, binary);
}

static void talk_take_heard(void *arg, void *message) {
    struct talk *t = arg;
    const struct heard *h = message;
    if (h->data && t->job) {
        talk_give(t, h->data, h->len);
    } else if (h->data && !t->begun) {
        t->begun = true;
        ws_close(t->ws, WS_UNSUPPORTED, "the first message is the request, as JSON text");
    } else if (!h->data && !h->json) {
        t->begun = true;
        talk_tell(t, t->shows ? "failed" : "error", 0, &h->reply);
        ws_close(t->ws, WS_POLICY, "bad_fields");
    } else if (!h->data && !t->begun) {
        talk_begin(t, h->json);
    } else if (t->job) {
        talk_take_message(t, h->json);
    }
}

static void talk_on_text(void *arg, const char *text, size_t len) {
    struct talk *t = arg;
    inbox_add(&t->in, text, len, false);
    t->in.read =
        t->shows ? talk_read_run_message : talk_read_message; /* the first is the request */
}

static void talk_on_binary(void *arg, const void *data, size_t len) {
    struct talk *t = arg;
    inbox_add(&t->in, data, len, true);
}

static void talk_on_closed(void *arg) {
    struct talk *t = arg;
    struct oneshot *x = t->job;
    loop_timer_stop(loop_of(t), &t->late);
    inbox_done(&t->in);
    t->job = NULL;
    record_unfollow(&t->f);
    if (x)
        oneshot_leave(x);
}

static void talk_on_late(struct timer *timer) {
    struct talk *t = timer->arg;
    ws_close(t->ws, WS_POLICY, "no request came");
}

static void free_talk(void *state) {
    struct talk *t = state;
    inbox_done(&t->in);
    free(t);
}

static void talk_open(struct call *c, bool shows) {
    if (!call_is_websocket(c, "POST for a stream of events"))
        return;
    struct talk *t = xcalloc(1, sizeof *t);
    const struct ws_options o = {.arg = t,
                                 .owner = crew_owner(c->who.tenant),
                                 .on_text = talk_on_text,
                                 .on_binary = talk_on_binary,
                                 .on_drain = talk_on_drain,
                                 .on_closed = talk_on_closed};
    t->call = c;
    t->shows = shows;
    t->late = (struct timer){.fn = talk_on_late, .arg = t};
    c->state = t;
    c->state_done = free_talk;
    t->ws = ws_accept(c->req, &o);
    t->in = (struct inbox){.crew = c->api->o.engine->crew,
                           .owner = crew_owner(c->who.tenant),
                           .ws = t->ws,
                           .arg = t,
                           .read = shows ? talk_read_run : talk_read_request,
                           .take = talk_take_heard,
                           .drop = heard_drop};
    if (t->ws)
        loop_timer_in_ms(loop_of(t), &t->late, (uint64_t)c->api->config->http.header_s * 1000);
}

static void do_execute_ws(struct call *c) {
    talk_open(c, false);
}

static void do_run_ws(struct call *c) {
    talk_open(c, true);
}

/* ---- what is said ---- */

#define SAYS(symbol, name_, word, of)                                                              \
    static const struct schema symbol = {                                                          \
        .name = (name_),                                                                           \
        .fields = (const struct field[]){MESSAGE_TYPE(word), MAY_HAVE("seq", FIELD_INT)},          \
        .n = 2,                                                                                    \
        .with = &(of)}
SAYS(says_start, "TalkStart", "start", start_schema);
SAYS(says_output, "TalkOutput", "output", stream_output_schema);
SAYS(says_result, "TalkResult", "result", run_end_schema);
SAYS(says_error, "TalkError", "error", error_schema);
static const struct schema sends_schema = {
    "TalkEvent", ONE_OF(&says_start, &says_output, &says_result, &says_error)};
static const struct schema takes_schema = {"TalkMessage", ONE_OF(&execute_schema, &message_schema)};

/* Of /v1/run: as a live sandbox's WebSocket says it. */
#define SHOWS(symbol, name_, word, of)                                                             \
    static const struct schema symbol = {                                                          \
        .name = (name_),                                                                           \
        .fields = (const struct field[]){MESSAGE_TYPE(word), MAY_HAVE("seq", FIELD_INT),           \
                                         MAY_HAVE("execution_id", FIELD_STRING)},                  \
        .n = 3,                                                                                    \
        .with = (of)}
SHOWS(shows_accepted, "RunAccepted", "accepted", NULL);
SHOWS(shows_start, "RunStart", "start", &start_schema);
SHOWS(shows_stdout, "RunStdout", "stdout", &utf8_stream_schema);
SHOWS(shows_stderr, "RunStderr", "stderr", &utf8_stream_schema);
SHOWS(shows_main, "RunShown", "result", &cell_main_schema);
SHOWS(shows_display, "RunDisplay", "display", &cell_display_schema);
SHOWS(shows_input, "RunInput", "input", &cell_input_schema);
SHOWS(shows_error, "RunError", "error", &exception_schema);
SHOWS(shows_end, "RunEnd", "end", &cell_end_schema);
SHOWS(shows_failed, "RunFailed", "failed", &error_schema);
static const struct schema run_sends_schema = {
    "RunSaid", ONE_OF(&shows_accepted, &shows_start, &shows_stdout, &shows_stderr, &shows_main,
                      &shows_display, &shows_input, &shows_error, &shows_end, &shows_failed)};
static const struct schema run_takes_schema = {"RunTold",
                                               ONE_OF(&run_message_schema, &message_schema)};

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"GET", "/v1/execute/stream", "Run a program and talk to it, over a WebSocket: the first message "
      "is the body of the POST, then events as JSON; stdin, stdin_end, interrupt, signal to the "
      "program", "execute", NULL, NULL, 101, "a WebSocket", NULL, .takes = &takes_schema,
      .sends = &sends_schema}, do_execute_ws},
    {{"GET", "/v1/run", "Run a program and talk to it, over a WebSocket: the first message is the "
      "body of the POST, then the events of a live cell as JSON; stdin, stdin_end, interrupt, signal "
      "to the program", "execute", NULL, NULL, 101, "a WebSocket", NULL, .takes = &run_takes_schema,
      .sends = &run_sends_schema}, do_run_ws},
};
/* clang-format on */
const struct route_table execute_ws_routes = ROUTE_TABLE(routes);
