/* See call.h.
 *
 * The answer is JSON, or a stream of events that ends with it; everything in it goes to the client
 * as it is. Whatever else happens (no server, no key, a stream that breaks), a request gets one
 * answer: then an error of ours. In the modern protocol closing the connection is the cancellation;
 * in the legacy one the server is told by a message, and sends no answer then. */

#include "remote/mcp/call.h"

#include "base/fd.h"
#include "base/json.h"
#include "cli/client.h"
#include "cli/report.h"
#include "remote/mcp/host_files.h"
#include "remote/net/sse.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CALLS_MAX 128 /* under way at once */

/* On stdio its messages are those of the next one, which has HTTP as we speak it. */
#define OLDEST "2024-11-05"
#define NEXT   "2025-03-26"

struct call {
    struct flight flight; /* first: see flight.h */
    struct pump *pump;    /* borrowed */
    json_t *id;           /* owned: of a request; or NULL */
    char *method;         /* owned */
    bool is_modern, is_batch, is_cancelled, is_answered;
    bool is_oldest; /* initialize, for a version that is spoken on stdio only */
    struct sse sse;
};

/* ---- what the server says ---- */

static bool is_answer_to(const struct call *c, const json_t *message) {
    return c->id && json_equal(json_object_get(message, "id"), c->id) &&
           !json_object_get(message, "method");
}

/* What initialize agreed on goes into the headers of what follows. */
static void learn_version(struct call *c, const json_t *answer) {
    const char *version =
        json_string_value(json_object_get(json_object_get(answer, "result"), "protocolVersion"));
    if (version && strspn(version, "0123456789-") == strlen(version))
        snprintf(c->pump->version, sizeof c->pump->version, "%s", version);
}

/* What we change of an answer; false: nothing. */
static bool name_oldest(const struct call *c, json_t *answer) {
    return c->is_oldest && json_object_set_new(json_object_get(answer, "result"), "protocolVersion",
                                               json_string(OLDEST)) == 0;
}

static bool add_tools(const struct call *c, json_t *answer) {
    return c->pump->files && strcmp(c->method, "tools/list") == 0 && host_files_add_tools(answer);
}

/* One message of the server. */
static void take_message(struct call *c, const char *text, size_t len) {
    struct err ignored;
    json_auto_t *message = NULL;
    if (json_read(text, len, JSON_DEPTH_MAX, &message, &ignored) < 0 ||
        json_is_array(message) != c->is_batch) {
        report_say("the server sent what is no message; it was left out");
        return;
    }
    bool is_answer = is_answer_to(c, message);
    if (is_answer && (c->is_cancelled || c->is_answered))
        return;
    c->is_answered |= is_answer;
    if (is_answer && strcmp(c->method, "initialize") == 0)
        learn_version(c, message);
    if (is_answer && (name_oldest(c, message) || add_tools(c, message))) {
        AUTO_FREE char *more = json_dumps(message, JSON_COMPACT);
        out_line(&c->pump->out, more ? more : text, more ? strlen(more) : len);
        return;
    }
    out_line(&c->pump->out, text, len);
}

static bool call_on_stream(struct flight *f, const char *data, size_t len) {
    struct call *c = (struct call *)(void *)f;
    struct err e;
    if (out_waits(&c->pump->out) > OUT_FULL)
        return false;
    sse_add(&c->sse, data, len);
    int rc;
    while ((rc = sse_next(&c->sse, &e)) > 0)
        if (c->sse.body.len)
            take_message(c, c->sse.body.data, c->sse.body.len);
    if (rc < 0)
        f->too_large = true;
    return true;
}

static void call_on_header(struct flight *f, const char *line, size_t len) {
    static const char name[] = "Mcp-Session-Id:";
    struct call *c = (struct call *)(void *)f;
    size_t at = sizeof name - 1;
    if (c->is_modern || strcmp(c->method, "initialize") != 0 || len <= at ||
        len >= sizeof c->pump->session || strncasecmp(line, name, at) != 0)
        return;
    snprintf(c->pump->session, sizeof c->pump->session, "%.*s", (int)len, line);
}

/* ---- the end ---- */

/* A refusal in the protocol's own words, made an answer to this request. */
static bool pass_error(struct call *c) {
    struct err ignored;
    json_auto_t *root = NULL;
    const struct buf *body = &c->flight.reply.body;
    if (json_read(body->data, body->len, JSON_DEPTH_MAX, &root, &ignored) < 0 ||
        !json_is_object(json_object_get(root, "error")) || !json_object_get(root, "jsonrpc"))
        return false;
    json_object_set(root, "id", c->id);
    AUTO_FREE char *text = json_dumps(root, JSON_COMPACT);
    if (!text)
        return false;
    out_line(&c->pump->out, text, strlen(text));
    c->is_answered = true;
    return true;
}

/* The API's own error, which a refusal of /mcp has as data; the words are those for a command line.
 */
static bool refused_by_api(const struct call *c, struct client_outcome *ret) {
    struct err ignored;
    json_auto_t *root = NULL;
    const struct buf *body = &c->flight.reply.body;
    if (json_read(body->data, body->len, JSON_DEPTH_MAX, &root, &ignored) < 0)
        return false;
    const json_t *data = json_object_get(json_object_get(root, "error"), "data");
    const json_t *error = json_object_get(data, "error");
    if (json_is_object(error))
        remote_error(error, ret);
    return json_is_object(error);
}

/* Why there is no answer, in a sentence that says what to do. */
static void explain(const struct call *c, const struct err *e, struct buf *to) {
    const struct remote_reply *reply = &c->flight.reply;
    if (e) {
        buf_adds(to, e->text);
        return;
    }
    if (reply->status / 100 == 2) {
        buf_adds(to, "the server ended the answer before it was whole");
        return;
    }
    struct client_outcome o = CLIENT_OUTCOME_INIT;
    if (!refused_by_api(c, &o))
        remote_refused(reply, &o);
    buf_adds(to, o.message.data);
    if (o.remediation.len)
        buf_addf(to, "; %s", o.remediation.data);
    client_outcome_done(&o);
}

static void call_on_end(struct flight *f, const struct err *e) {
    struct call *c = (struct call *)(void *)f;
    bool good = !e && f->reply.status / 100 == 2;
    if (good && !f->is_sse && f->reply.body.len)
        take_message(c, f->reply.body.data, f->reply.body.len);
    if (c->is_cancelled || c->is_answered || (good && !c->id))
        return;
    bool is_key = f->reply.status == 401; /* the key is not the client's affair but ours */
    if (c->id && !good && !e && !is_key && pass_error(c))
        return;
    AUTO_BUF why = BUF_INIT;
    explain(c, e, &why);
    if (c->id || c->is_batch)
        pump_answer_error(c->pump, c->id, MCP_INTERNAL_ERROR, why.data);
    else
        report_say(why.data);
}

static void call_on_free(struct flight *f) {
    struct call *c = (struct call *)(void *)f;
    json_decref(c->id);
    free(c->method);
    sse_done(&c->sse);
}

static const struct flight_kind call_kind = {.on_stream = call_on_stream,
                                             .on_header = call_on_header,
                                             .on_end = call_on_end,
                                             .on_free = call_on_free};

/* ---- the start ---- */

static void add_header(struct call *c, const char *name, const char *value) {
    AUTO_BUF line = BUF_INIT;
    message_header(&line, name, value);
    flight_header(&c->flight, line.data);
}

static void add_headers(struct call *c, const struct message *m) {
    const struct pump *p = c->pump;
    flight_header(&c->flight, "Content-Type: application/json");
    flight_header(&c->flight, "Accept: application/json, text/event-stream");
    if (p->header)
        flight_header(&c->flight, p->header);
    if (m->is_modern) {
        add_header(c, "MCP-Protocol-Version", m->version);
        if (*m->method)
            add_header(c, "Mcp-Method", m->method);
        if (m->name)
            add_header(c, "Mcp-Name", m->name);
        return;
    }
    if (strcmp(m->method, "initialize") == 0)
        return;
    if (*p->version)
        add_header(c, "MCP-Protocol-Version", p->version);
    if (*p->session)
        flight_header(&c->flight, p->session);
}

static bool write_oldest(struct call *c, const struct message *m) {
    const json_t *asked = message_param(m, "protocolVersion");
    if (strcmp(m->method, "initialize") != 0 || !json_is_string(asked) ||
        strcmp(json_string_value(asked), OLDEST) != 0)
        return false;
    json_auto_t *next = json_deep_copy(m->root);
    json_object_set_new(json_object_get(next, "params"), "protocolVersion", json_string(NEXT));
    AUTO_FREE char *text = json_dumps(next, JSON_COMPACT);
    buf_adds(&c->flight.sent, text ? text : "");
    return c->is_oldest = text != NULL;
}

void call_start(struct pump *p, const struct message *m, const char *line, size_t len) {
    struct err e;
    if (p->flights.n >= CALLS_MAX && m->id) {
        pump_answer_error(p, m->id, MCP_INTERNAL_ERROR,
                          "there are 128 requests under way, which is the most; wait for one");
        return;
    }
    struct call *c = flight_new(sizeof *c, &call_kind);
    c->pump = p;
    c->id = m->id ? json_deep_copy(m->id) : NULL;
    c->method = xstrdup(m->method);
    c->is_modern = m->is_modern;
    c->is_batch = json_is_array(m->root);
    c->sse = (struct sse)SSE_INIT;
    if (!write_oldest(c, m))
        buf_add(&c->flight.sent, line, len);
    add_headers(c, m);
    p->called |= strcmp(m->method, "tools/call") == 0 || c->is_batch;
    if (flight_start(&p->flights, &c->flight, "POST", p->path, &e) < 0)
        pump_answer_error(p, m->id, MCP_INTERNAL_ERROR, e.text);
}

/* ---- those under way ---- */

static struct call *call_of(struct flight *f) {
    return f->kind == &call_kind ? (struct call *)(void *)f : NULL;
}

bool call_any_waits(const struct pump *p) {
    for (struct flight *f = p->flights.list; f; f = f->next) {
        const struct call *c = call_of(f);
        if (!c || (!c->is_cancelled && strcmp(c->method, "subscriptions/listen") != 0))
            return true;
    }
    return false;
}

bool call_cancel(struct pump *p, const struct message *m) {
    const json_t *id = message_param(m, "requestId");
    for (struct flight *f = p->flights.list; id && f; f = f->next) {
        struct call *c = call_of(f);
        if (!c || !c->id || !json_equal(c->id, id))
            continue;
        bool is_modern = c->is_modern;
        c->is_cancelled = true;
        if (is_modern)
            flight_drop(f); /* and c with it */
        return is_modern;
    }
    return m->is_modern;
}
