/* GET /v1/sandboxes/{id}/ws: a live sandbox over one WebSocket. The client sends messages (execute,
 * stdin, interrupt, resume), we send the events of the executions that it started or asked for. A
 * message that is wrong gets an answer of type failed, and the connection stays.
 *
 * A stream is a follower of an execution's record. While the client does not read, the executions
 * that it started are held, and those that others started are left out until it has caught up. When
 * the client leaves, on_disconnect decides about the executions that it started. */

#include "api/core/inbox.h"
#include "api/jobs/cell_job.h"
#include "api/jobs/inputs.h"
#include "api/jobs/records.h"
#include "api/native/kernels.h"
#include "api/native/native.h"
#include "api/native/sandbox_ws_schema.h"
#include "base/json.h"
#include "http/ws.h"
#include "http/ws_handshake.h"
#include "loop/crew.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STREAMS 32
#define MAX_REF     256 /* bytes */
#define ALLOWED     "execute, stdin, interrupt, resize, resume"
#define TYPES       "type is one of: " ALLOWED

struct stream {
    struct session *session; /* NULL: this place is free */
    struct follower f;
    struct cell_job *job; /* borrowed while it runs; NULL: somebody else started it */
    char id[ID_MAX];      /* of the execution */
    char *ref;            /* owned: JSON; or NULL */
};

struct session {
    struct call *call;           /* borrowed: its owner */
    struct ws *ws;               /* borrowed: lives as long as the call */
    struct live_watcher watcher; /* of the sandbox, which is in use meanwhile */
    char reason[124];            /* why it is closed */
    struct stream streams[MAX_STREAMS];
    struct inbox in;
};

/* ---- to the client ---- */

struct event {
    const char *type;
    uint64_t number;     /* in the execution's record; 0: it is in none */
    const char *id;      /* of the execution; or NULL */
    const char *ref;     /* JSON; or NULL */
    const char *members; /* the event's object, as JSON */
    size_t len;
};

static void sandbox_ws_tell(struct session *s, const struct event *e) {
    AUTO_BUF text = BUF_INIT;
    struct jw j = JW_INIT(&text);
    jw_object(&j);
    jw_key_str(&j, "type", e->type);
    if (e->number)
        jw_key_uint(&j, "seq", e->number);
    if (e->id)
        jw_key_str(&j, "execution_id", e->id);
    if (e->ref) {
        jw_key(&j, "ref");
        jw_raw(&j, e->ref, strlen(e->ref));
    }
    jw_members(&j, e->members, e->len);
    jw_object_end(&j);
    ws_send_text(s->ws, text.data, text.len);
}

static void sandbox_ws_fail(struct session *s, const char *ref, const struct problem *p) {
    AUTO_BUF json = BUF_INIT;
    call_refused(s->call->api, p);
    problem_json(p, &json);
    sandbox_ws_tell(
        s, &(struct event){.type = "failed", .ref = ref, .members = json.data, .len = json.len});
}

static void fail_with(struct session *s, const char *ref, const struct err *e) {
    struct problem p = problem_of(e);
    sandbox_ws_fail(s, ref, &p);
}

/* ---- streams ---- */

static void free_place(struct stream *st) {
    free(st->ref);
    *st = (struct stream){0};
}

static void sandbox_ws_on_event(struct follower *f, uint64_t number, const char *type,
                                const char *json, size_t len) {
    struct stream *st = f->arg;
    struct session *s = st->session;
    if (!type) {
        free_place(st);
        return;
    }
    sandbox_ws_tell(s, &(struct event){type, number, st->id, st->ref, json, len});
    bool full = ws_backlog(s->ws) > HTTP_HIGH_WATER;
    if (st->job && full)
        cell_job_hold(st->job, true);
    else if (!st->job)
        f->paused = full;
}

/* On from the last event that the client got. */
static void sandbox_ws_catch_up(struct session *s, struct stream *st) {
    const struct call *c = s->call;
    struct record *rec = records_find(c->api->records, c->who.tenant, st->id);
    if (rec) {
        record_follow(rec, &st->f);
        return;
    }
    struct problem p;
    problem_set(&p, "no_execution", "the execution was forgotten before its events were read");
    p.remediation = "read faster";
    sandbox_ws_fail(s, st->ref, &p);
    free_place(st);
}

static void sandbox_ws_on_drain(void *arg) {
    struct session *s = arg;
    for (unsigned i = 0; i < MAX_STREAMS && ws_backlog(s->ws) < HTTP_HIGH_WATER; i++) {
        struct stream *st = &s->streams[i];
        if (st->job)
            cell_job_hold(st->job, false);
        else if (st->session && st->f.paused)
            sandbox_ws_catch_up(s, st);
    }
}

/* A free place, or NULL and the client knows. */
static struct stream *new_stream(struct session *s, const char *ref) {
    for (unsigned i = 0; i < MAX_STREAMS; i++) {
        struct stream *st = &s->streams[i];
        if (st->session)
            continue;
        st->f = (struct follower){.fn = sandbox_ws_on_event, .arg = st};
        return st;
    }
    struct problem p;
    problem_set(&p, "too_many_executions", "32 executions are under way on this connection");
    sandbox_ws_fail(s, ref, &p);
    return NULL;
}

static void follow(struct session *s, struct stream *st, struct record *rec, const char *ref) {
    st->session = s;
    st->ref = ref ? xstrdup(ref) : NULL;
    snprintf(st->id, sizeof st->id, "%s", record_id(rec));
    st->f.is_first = st->job != NULL;
    record_follow(rec, &st->f);
}

/* ---- from the client ---- */

static void do_message_execute(struct session *s, const json_t *body, const char *ref) {
    const struct cell_job_options o = {.live = s->watcher.live, .body = body, .stream = true};
    struct problem p = {0};
    struct stream *st = new_stream(s, ref);
    if (!st)
        return;
    if (cell_job_start(&s->call->who, &o, &st->job, &p) < 0) {
        sandbox_ws_fail(s, ref, &p);
        return;
    }
    /* The execution may have to wait for its kernel; a client that is cut off meanwhile needs its
     * id to resume. */
    sandbox_ws_tell(s, &(struct event){"accepted", 0, cell_job_id(st->job), ref, "{}", 2});
    follow(s, st, cell_job_record(st->job), ref);
}

/* NULL when the client was told why; a paused sandbox is one reason. */
static struct kernel *find_kernel(struct session *s, const json_t *body, const char *ref) {
    struct err e;
    struct kernel *k = kernel_find(s->watcher.live, field_str(body, "kernel_id", NULL), &e);
    struct problem p = {0};
    if (!k) {
        fail_with(s, ref, &e);
    } else if (live_is_paused(s->watcher.live)) {
        problem_set(&p, "sandbox_paused", "the sandbox is paused");
        sandbox_ws_fail(s, ref, &p);
        return NULL;
    }
    return k;
}

static void do_message_stdin(struct session *s, const json_t *body, const char *ref) {
    struct kernel *k = find_kernel(s, body, ref);
    struct err e;
    if (k && kernel_answer(k, body, &e) < 0)
        fail_with(s, ref, &e);
}

static void do_message_interrupt(struct session *s, const json_t *body, const char *ref) {
    struct kernel *k = find_kernel(s, body, ref);
    AUTO_BUF json = BUF_INIT;
    if (!k)
        return;
    kernel_interrupt_json(k, &json);
    sandbox_ws_tell(
        s,
        &(struct event){.type = "interrupted", .ref = ref, .members = json.data, .len = json.len});
}

/* The size of a command's terminal, whoever sits at it. */
static void do_message_resize(struct session *s, const json_t *body, const char *ref) {
    struct err e;
    struct command *c = command_find(s->watcher.live, field_str(body, "command_id", ""), &e);
    if (c && !command_has_terminal(c)) {
        err_user(&e, "no_terminal", "the command has no terminal");
        c = NULL;
    }
    if (!c) {
        fail_with(s, ref, &e);
        return;
    }
    command_resize(c, (uint32_t)field_int(body, "rows", 0), (uint32_t)field_int(body, "cols", 0));
    sandbox_ws_tell(s, &(struct event){.type = "resized", .ref = ref, .members = "{}", .len = 2});
}

static void do_message_resume(struct session *s, const json_t *body, const char *ref) {
    const struct call *c = s->call;
    uint64_t after = (uint64_t)field_int(body, "after", 0);
    struct record *rec =
        records_find(c->api->records, c->who.tenant, field_str(body, "execution_id", ""));
    struct problem none;
    problem_set(&none, "no_execution", "there is no such execution");
    if (rec && record_is_done(rec) && after >= record_last(rec)) {
        none.message = "the execution is over and has no event after that number";
        none.remediation = "GET /v1/executions/{id} has its result";
        rec = NULL;
    }
    if (!rec) {
        sandbox_ws_fail(s, ref, &none);
        return;
    }
    struct stream *st = new_stream(s, ref);
    if (!st)
        return;
    st->f.after = after;
    follow(s, st, rec, ref);
}

static const struct message {
    const char *type;
    const struct schema *schema;
    void (*fn)(struct session *s, const json_t *body, const char *ref);
} messages[] = {
    {"execute", &cell_schema, do_message_execute},
    {"stdin", &stdin_schema, do_message_stdin},
    {"interrupt", &which_kernel_schema, do_message_interrupt},
    {"resize", &resize_schema, do_message_resize},
    {"resume", &resume_schema, do_message_resume},
};

static const struct message *find_message(const char *type) {
    for (size_t i = 0; type && i < sizeof messages / sizeof *messages; i++) {
        if (strcmp(messages[i].type, type) == 0)
            return &messages[i];
    }
    return NULL;
}

/* The client's name for what it asks, as JSON in `to`. */
static int read_ref(const json_t *body, struct buf *to, struct problem *p) {
    const json_t *ref = json_object_get(body, "ref");
    struct jw j = JW_INIT(to);
    if (!ref || json_is_null(ref))
        return 0;
    if (!json_is_string(ref) || json_string_length(ref) > MAX_REF)
        return problem_bad_value(p, "leave it out, or make it shorter",
                                 "ref is not a string of at most 256 bytes");
    jw_strn(&j, json_string_value(ref), json_string_length(ref));
    return 0;
}

static int read_type(const json_t *body, const struct message **ret, struct problem *p) {
    const json_t *type = json_object_get(body, "type");
    *ret = find_message(json_string_value(type));
    if (*ret)
        return 0;
    if (!json_is_string(type))
        return problem_bad_value(p, TYPES, "the message has no type, which is one of: " ALLOWED);
    return problem_bad_value(p, TYPES, "type is \"%.40s\", which is none of: " ALLOWED,
                             json_string_value(type));
}

/* Against the table of its type. False: the client knows what is wrong. */
static bool check(struct session *s, const struct message *m, const json_t *body, const char *ref) {
    AUTO_BUF faults = BUF_INIT;
    struct jw j = JW_INIT(&faults);
    jw_object(&j);
    jw_key(&j, "detail");
    jw_array(&j);
    unsigned n = fields_check(m->schema, body, &j);
    jw_array_end(&j);
    jw_object_end(&j);
    if (n == 0)
        return true;
    call_add_error(&faults, 422);
    sandbox_ws_tell(
        s,
        &(struct event){.type = "failed", .ref = ref, .members = faults.data, .len = faults.len});
    return false;
}

struct heard {
    json_t *body;   /* owned; NULL: it is no JSON, */
    struct err why; /* or it is binary when this has no text */
};

static void *sandbox_ws_read_message(const void *data, size_t len, bool binary) {
    struct heard *h = xcalloc(1, sizeof *h);
    if (!binary && json_read(data, len, JSON_DEPTH_MAX, &h->body, &h->why) < 0)
        h->body = NULL;
    return h;
}

static void drop_message(void *message) {
    struct heard *h = message;
    json_decref(h->body);
    free(h);
}

static void sandbox_ws_take_message(void *arg, void *message) {
    struct session *s = arg;
    struct heard *h = message;
    AUTO_BUF named = BUF_INIT;
    const struct message *m;
    struct problem p = {.status = 422,
                        .code = "bad_json",
                        .remediation = "a message is a JSON object; its type is one of: " ALLOWED};
    json_t *body = h->body;
    if (!s->watcher.live)
        return;
    if (!body) {
        snprintf(p.text, sizeof p.text, "%s", *h->why.text ? h->why.text : "the message is binary");
        sandbox_ws_fail(s, NULL, &p);
        return;
    }
    if (!json_is_object(body))
        snprintf(p.text, sizeof p.text, "the message is an array");
    bool bad = !json_is_object(body) || read_ref(body, &named, &p) < 0;
    const char *ref = named.len ? named.data : NULL;
    if (bad || read_type(body, &m, &p) < 0) {
        sandbox_ws_fail(s, ref, &p);
        return;
    }
    json_object_del(body, "type");
    json_object_del(body, "ref");
    if (check(s, m, body, ref))
        m->fn(s, body, ref);
}

static void sandbox_ws_on_text(void *arg, const char *text, size_t len) {
    struct session *s = arg;
    inbox_add(&s->in, text, len, false);
}

static void sandbox_ws_on_binary(void *arg, const void *data, size_t len) {
    struct session *s = arg;
    inbox_add(&s->in, data, len, true);
}

/* ---- its ends ---- */

static void sandbox_ws_leave(struct session *s) {
    for (unsigned i = 0; i < MAX_STREAMS; i++) {
        struct cell_job *x = s->streams[i].job;
        record_unfollow(&s->streams[i].f);
        free_place(&s->streams[i]);
        if (x)
            cell_job_leave(x);
    }
    if (s->watcher.live) {
        live_release(s->watcher.live);
        live_unwatch(&s->watcher);
    }
}

static void sandbox_ws_on_closed(void *arg) {
    sandbox_ws_leave(arg);
}

static void free_session(void *state) {
    struct session *s = state;
    sandbox_ws_leave(s);
    inbox_done(&s->in);
    free(s);
}

static void sandbox_ws_on_end(struct live_watcher *w, const struct err *why) {
    struct session *s = w->arg;
    snprintf(s->reason, sizeof s->reason, "%.123s", why->text);
    ws_close(s->ws, WS_GOING_AWAY, s->reason);
}

static void do_sandbox_ws(struct call *c) {
    if (!call_is_websocket(c, "POST to the sandbox's /execute"))
        return;
    struct live *l = call_live(c);
    if (!l)
        return;
    struct session *s = xcalloc(1, sizeof *s);
    const struct ws_options o = {.arg = s,
                                 .owner = crew_owner(c->who.tenant),
                                 .on_text = sandbox_ws_on_text,
                                 .on_binary = sandbox_ws_on_binary,
                                 .on_drain = sandbox_ws_on_drain,
                                 .on_closed = sandbox_ws_on_closed};
    s->call = c;
    s->ws = ws_accept(c->req, &o);
    if (!s->ws) {
        free(s);
        return;
    }
    s->in = (struct inbox){.crew = c->api->o.engine->crew,
                           .owner = crew_owner(c->who.tenant),
                           .ws = s->ws,
                           .arg = s,
                           .read = sandbox_ws_read_message,
                           .take = sandbox_ws_take_message,
                           .drop = drop_message};
    c->state = s;
    c->state_done = free_session;
    s->watcher = (struct live_watcher){.on_end = sandbox_ws_on_end, .arg = s};
    live_watch(l, &s->watcher);
    live_hold(l);
}

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"GET", "/v1/sandboxes/{id}/ws", "Use its kernels over a WebSocket: messages of type execute, "
      "stdin, interrupt, resume to the server, events as JSON to the client", "sandboxes", NULL, NULL,
      101, "a WebSocket", NULL, .takes = &sandbox_ws_takes, .sends = &sandbox_ws_sends,
      .errors = ERRORS_OF_SANDBOX}, do_sandbox_ws},
};
/* clang-format on */
const struct route_table sandbox_ws_routes = ROUTE_TABLE(routes);
