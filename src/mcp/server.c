/* See server.h. From an HTTP request to calls: the body is read (beside the loop, if it is large),
 * each message is of one era, and what is wrong before a method is known is said here. */

#include "mcp/server.h"

#include "base/fd.h"
#include "http/http.h"
#include "mcp/internal.h"
#include "mcp/listen.h"
#include "mcp/mirror.h"
#include "mcp/session.h"
#include "mcp/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define JSON "application/json"

struct mcp *mcp_new(const struct mcp_host *h) {
    struct mcp *m = xcalloc(1, sizeof *m);
    const struct mcp_tool *const *tools = h->offers->tools;
    size_t n = 0;
    m->host = *h;
    while (tools && tools[n])
        n++;
    m->schemas = xcalloc(n + 1, sizeof(json_t *));
    for (size_t i = 0; i < n; i++)
        if (tools[i]->takes_json)
            m->schemas[i] = json_loads(tools[i]->takes_json, 0, NULL);
    return m;
}

/* ---- one request ---- */

static void visit_free(struct visit *v) {
    asker_unref(v->who);
    json_decref(v->tree);
    buf_done(&v->body);
    free(v);
}

/* The client has left, or has its reply. */
static void visit_leave(struct visit *v) {
    v->req = NULL;
    if (v->stream)
        stream_left(v->stream);
    if (v->listener)
        listen_left(v->listener);
}

void mcp_request_over(struct http_req *r) {
    struct visit *v = http_guest(r);
    if (!v)
        return;
    http_set_guest(r, NULL);
    visit_leave(v);
    v->is_over = true;
    if (!v->is_reading)
        visit_free(v);
}

static void visit_on_gone(struct http_req *r) {
    if (http_guest(r))
        visit_leave(http_guest(r));
}

/* An error before there is a call. */
static void visit_error(struct visit *v, int status, const json_t *id, int code,
                        const char *message) {
    AUTO_BUF text = BUF_INIT;
    rpc_error(&text, id, code, message, NULL);
    http_reply(v->req, status, JSON, text.data, text.len);
}

static void wrong_version(struct visit *v, const json_t *id, const char *version) {
    AUTO_BUF text = BUF_INIT;
    AUTO_BUF data = BUF_INIT;
    struct jw j = JW_INIT(&data);
    jw_object(&j);
    jw_key(&j, "supported");
    era_put_versions(&j, !v->is_modern);
    jw_key_str(&j, "requested", version);
    jw_object_end(&j);
    rpc_error(&text, id, RPC_VERSION, "this version of the protocol is not spoken here", data.data);
    http_reply(v->req, 400, JSON, text.data, text.len);
}

/* ---- the modern era ---- */

/* What is wrong with it, or NULL; then *ret_code. */
static const char *modern_wrong(struct visit *v, const struct rpc *r, const char *header,
                                int *ret_code) {
    const json_t *version = era_meta(r->params, META_VERSION);
    *ret_code = RPC_PARAMS;
    if (!json_is_string(version))
        return "params._meta has no " META_VERSION;
    *ret_code = RPC_HEADER;
    if (!header || strcmp(header, json_string_value(version)) != 0)
        return "the header MCP-Protocol-Version is not the version of the body";
    *ret_code = RPC_VERSION;
    if (!era_is_modern(json_string_value(version)))
        return "";
    *ret_code = RPC_PARAMS;
    if (!json_is_object(era_meta(r->params, META_CAPABILITIES)))
        return "params._meta has no " META_CAPABILITIES;
    *ret_code = RPC_HEADER;
    return mirror_wrong(v->req, r);
}

static void modern_take(struct visit *v, const struct rpc *r, const char *header) {
    int code;
    v->version = MCP_MODERN;
    const char *wrong = r->kind == RPC_REQUEST ? modern_wrong(v, r, header, &code) : NULL;
    if (wrong && code == RPC_VERSION)
        wrong_version(v, r->id, json_string_value(era_meta(r->params, META_VERSION)));
    else if (wrong)
        visit_error(v, 400, r->id, code, wrong);
    else if (r->kind == RPC_REQUEST) {
        struct stream *to = stream_new(v, 1, false);
        method_call(call_new(v, to, v->tree, r), v, r->method);
    } else {
        if (r->kind == RPC_NOTIFICATION)
            method_notify(v, r);
        http_reply(v->req, 202, NULL, "", 0);
    }
}

/* ---- the legacy era ---- */

/* The version that counts, and the session; false: the client has its answer. */
static bool legacy_settle(struct visit *v, const struct rpc *r, const char *header) {
    bool begins = r && r->kind == RPC_REQUEST && strcmp(r->method, "initialize") == 0;
    const char *id;
    v->version = MCP_LEGACY_OLDEST;
    if (!begins && !mirror_header(v->req, "Mcp-Session-Id", &id)) {
        visit_error(v, 400, NULL, RPC_INVALID, "there are two Mcp-Session-Id");
        return false;
    }
    if (!begins && session_find(v, id) == SESSION_UNKNOWN) {
        visit_error(v, 404, r ? r->id : NULL, RPC_INVALID,
                    "this session has ended: begin a new one with initialize");
        return false;
    }
    if (header && !begins && !era_legacy(header)) {
        wrong_version(v, r ? r->id : NULL, header);
        return false;
    }
    if (header && era_legacy(header))
        v->version = era_legacy(header);
    return true;
}

/* A request has a call, a notification or response its effect. */
static void legacy_take(struct visit *v, struct stream *to, json_t *message, const struct rpc *r) {
    if (r->kind == RPC_REQUEST) {
        struct mcp_call *c = call_new(v, to, message, r);
        c->log_level = session_level(v->m, v->who);
        method_call(c, v, r->method);
    } else if (r->kind == RPC_NOTIFICATION) {
        method_notify(v, r);
    } else if (r->kind == RPC_RESPONSE) {
        ask_response(v, r);
    } else {
        AUTO_BUF text = BUF_INIT;
        rpc_error(&text, r->id, r->code, r->wrong, NULL);
        stream_answer(to, 400, &text);
    }
}

/* JSON-RPC's batches were in one revision. */
static void batch_take(struct visit *v, const char *header) {
    struct rpc all[RPC_BATCH_MAX];
    size_t n = json_array_size(v->tree);
    unsigned answers = 0;
    if (!legacy_settle(v, NULL, header))
        return;
    if (strcmp(v->version, MCP_LEGACY_OLDEST) != 0 || n == 0 || n > RPC_BATCH_MAX) {
        visit_error(v, 400, NULL, RPC_INVALID,
                    "batches are of version 2025-03-26 only, and of at most 16 messages");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        all[i] = rpc_read(json_array_get(v->tree, i));
        bool begins = all[i].kind == RPC_REQUEST && strcmp(all[i].method, "initialize") == 0;
        if (begins || era_meta(all[i].params, META_VERSION))
            all[i] = (struct rpc){.kind = RPC_BAD,
                                  .id = all[i].id,
                                  .code = RPC_INVALID,
                                  .wrong = "this is not sent in a batch"};
        answers += all[i].kind == RPC_REQUEST || all[i].kind == RPC_BAD;
    }
    struct stream *to = answers ? stream_new(v, answers, true) : NULL;
    json_t *tree = json_incref(v->tree); /* the last answer ends the visit's stream, not the tree */
    for (size_t i = 0; i < n; i++)
        legacy_take(v, to, json_array_get(tree, i), &all[i]);
    json_decref(tree);
    if (!answers)
        http_reply(v->req, 202, NULL, "", 0);
}

static void message_take(struct visit *v) {
    const char *header;
    if (!mirror_header(v->req, "MCP-Protocol-Version", &header)) {
        visit_error(v, 400, NULL, RPC_HEADER, "there are two MCP-Protocol-Version");
        return;
    }
    if (json_is_array(v->tree)) {
        batch_take(v, header);
        return;
    }
    struct rpc r = rpc_read(v->tree);
    v->is_modern = era_of(header, r.params);
    if (r.kind == RPC_BAD)
        visit_error(v, 400, r.id, r.code, r.wrong);
    else if (v->is_modern)
        modern_take(v, &r, header);
    else if (legacy_settle(v, &r, header)) {
        struct stream *to = r.kind == RPC_REQUEST ? stream_new(v, 1, false) : NULL;
        legacy_take(v, to, v->tree, &r);
        if (r.kind != RPC_REQUEST)
            http_reply(v->req, 202, NULL, "", 0);
    }
}

/* ---- the body ---- */

static bool visit_slice(struct work *w) {
    struct visit *v = w->arg;
    v->tree = rpc_parse(v->body.data, v->body.len, &v->why);
    buf_done(&v->body);
    v->body = (struct buf)BUF_INIT;
    return false;
}

static void visit_read(struct visit *v) {
    if (v->tree)
        message_take(v);
    else
        visit_error(v, 400, NULL, RPC_PARSE, v->why.text);
}

static void visit_on_read(struct work *w) {
    struct visit *v = w->arg;
    v->is_reading = false;
    if (v->is_over)
        visit_free(v);
    else if (v->req)
        visit_read(v);
}

static struct visit *visit_new(struct mcp *m, struct http_req *r, struct mcp_asker *who) {
    struct visit *v = xcalloc(1, sizeof *v);
    *v = (struct visit){.m = m, .req = r, .who = who, .body = BUF_INIT, .version = MCP_MODERN};
    who->refs = 1;
    http_set_guest(r, v);
    http_on_gone(r, visit_on_gone);
    return v;
}

static void visit_with_body(struct http_req *r) {
    struct visit *v = http_guest(r);
    const struct buf *b = http_body(r);
    v->length = b->len;
    if (rpc_is_small(b->data, b->len)) {
        v->tree = rpc_parse(b->data, b->len, &v->why);
        visit_read(v);
        return;
    }
    v->body = http_move_body(r);
    v->work = (struct work){.slice = visit_slice,
                            .done = visit_on_read,
                            .arg = v,
                            .owner = crew_owner(v->who->owner),
                            .is_long = v->body.len > CREW_LONG};
    v->is_reading = true;
    crew_add(v->m->host.crew, &v->work);
}

static void visit_too_large(struct http_req *r) {
    visit_error(http_guest(r), 413, NULL, RPC_INVALID, "a message has at most 4 MiB");
}

static void visit_no_room(struct http_req *r) {
    http_add_header(r, "Retry-After", "1");
    visit_error(http_guest(r), 503, NULL, RPC_INTERNAL,
                "too many messages are being read: try again");
}

/* ---- methods of HTTP ---- */

static bool is_json(const char *type) {
    size_t n = type ? strcspn(type, "; \t") : 0;
    return n == sizeof JSON - 1 && strncasecmp(type, JSON, n) == 0;
}

static void take_post(struct visit *v, struct http_req *r) {
    const char *accept = http_header(r, "Accept");
    if (!is_json(http_header(r, "Content-Type"))) {
        visit_error(v, 415, NULL, RPC_INVALID, "send the header Content-Type: application/json");
        return;
    }
    if (accept && !strstr(accept, "*/*") && !strstr(accept, "application/") &&
        !strstr(accept, "text/event-stream") && !strstr(accept, "text/*")) {
        visit_error(v, 406, NULL, RPC_INVALID,
                    "send the header Accept: application/json, text/event-stream");
        return;
    }
    http_take_body(r, &(struct http_take){.max = RPC_MAX,
                                          .whole = visit_with_body,
                                          .too_large = visit_too_large,
                                          .no_room = visit_no_room});
}

static void no_method(struct visit *v, const char *why) {
    http_add_header(v->req, "Allow", "POST");
    visit_error(v, 405, NULL, RPC_INVALID, why);
}

static bool visit_is_modern(struct visit *v, const char **ret_header) {
    if (!mirror_header(v->req, "MCP-Protocol-Version", ret_header))
        *ret_header = NULL;
    return era_of(*ret_header, NULL);
}

static void take_get(struct visit *v, struct http_req *r) {
    const char *header, *last = http_header(r, "Last-Event-ID");
    if (visit_is_modern(v, &header))
        no_method(v, "this version of the protocol has no GET: see subscriptions/listen");
    else if (!legacy_settle(v, NULL, header))
        return;
    else if (last && !stream_resume(v, last))
        visit_error(v, 404, NULL, RPC_INVALID,
                    "what was there after this event is not kept any more");
    else if (!last && !listen_legacy(v))
        no_method(v, "this server sends nothing but answers");
}

static void take_delete(struct visit *v) {
    const char *header;
    if (visit_is_modern(v, &header)) {
        no_method(v, "this version of the protocol has no sessions");
        return;
    }
    if (!legacy_settle(v, NULL, header))
        return;
    if (!v->who->session[0]) {
        visit_error(v, 400, NULL, RPC_INVALID, "there is no Mcp-Session-Id");
        return;
    }
    session_end(v);
    http_reply(v->req, 204, NULL, "", 0);
}

void mcp_serve(struct mcp *m, struct http_req *r, struct mcp_asker *who) {
    struct visit *v = visit_new(m, r, who);
    const char *method = http_method(r);
    if (strcmp(method, "POST") == 0)
        take_post(v, r);
    else if (strcmp(method, "GET") == 0)
        take_get(v, r);
    else if (strcmp(method, "DELETE") == 0)
        take_delete(v);
    else
        no_method(v, "this is for POST, GET and DELETE");
}
