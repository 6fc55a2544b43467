/* See call.h. A call is in the server's list from its request until its answer. Its answer goes to
 * the stream of the request, if anybody still listens there. */

#include "mcp/call.h"

#include "base/base64.h"
#include "base/fd.h"
#include "base/list.h"
#include "mcp/internal.h"
#include "mcp/stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTED_MAX   1000 /* resources in a list */
#define COMPLETE_MAX 100  /* values of a completion: the protocol's bound */

static const char *const levels[] = {"debug", "info",     "notice", "warning",
                                     "error", "critical", "alert",  "emergency"};
#define NLEVELS ((int)(sizeof levels / sizeof *levels))

int call_level(const char *name) {
    for (int i = 0; name && i < NLEVELS; i++)
        if (strcmp(name, levels[i]) == 0)
            return i;
    return -1;
}

/* ---- its life ---- */

struct mcp_asker *asker_ref(struct mcp_asker *who) {
    who->refs++;
    return who;
}

void asker_unref(struct mcp_asker *who) {
    if (who && --who->refs == 0)
        who->free(who);
}

struct mcp_call *call_new(struct visit *v, struct stream *to, json_t *message,
                          const struct rpc *r) {
    struct mcp_call *c = xcalloc(1, sizeof *c);
    json_t *can = era_meta(r->params, META_CAPABILITIES);
    const char *level = json_string_value(era_meta(r->params, META_LOG_LEVEL));
    *c = (struct mcp_call){.m = v->m,
                           .to = to,
                           .who = asker_ref(v->who),
                           .message = json_incref(message),
                           .length = v->length,
                           .id = r->id,
                           .params = r->params,
                           .is_modern = v->is_modern,
                           .version = v->version,
                           .can = v->is_modern ? era_capabilities(can) : v->can,
                           .log_level = v->is_modern ? call_level(level) : 0,
                           .content = CONTENT_INIT,
                           .structured = BUF_INIT,
                           .meta = BUF_INIT,
                           .items = BUF_INIT};
    c->progress.tail = (struct buf)BUF_INIT;
    LIST_PUSH(&v->m->calls, c, next);
    return c;
}

static void call_free(struct mcp_call *c) {
    LIST_REMOVE(&c->m->calls, c, next);
    ask_end(c);
    progress_end(c);
    if (c->state_done)
        c->state_done(c->state);
    uri_match_done(&c->match);
    content_done(&c->content);
    buf_done(&c->structured);
    buf_done(&c->meta);
    buf_done(&c->items);
    json_decref(c->args);
    json_decref(c->message);
    asker_unref(c->who);
    free(c);
}

void call_drop(struct mcp_call *c) {
    call_free(c);
}

bool call_is(const struct mcp_call *c, const struct mcp_asker *who, const json_t *id) {
    return strcmp(c->who->owner, who->owner) == 0 && strcmp(c->who->session, who->session) == 0 &&
           json_equal(c->id, id);
}

void call_send(struct mcp_call *c, const struct buf *message) {
    if (c->to && !c->is_cancelled)
        stream_message(c->to, message);
}

/* The last that is said of it. */
static void call_over(struct mcp_call *c, int status, const struct buf *message) {
    struct stream *to = c->to;
    c->to = NULL;
    call_free(c);
    if (to)
        stream_answer(to, status, message);
}

void call_error(struct mcp_call *c, int status, int code, const char *message, const char *data) {
    AUTO_BUF text = BUF_INIT;
    rpc_error(&text, c->id, code, message, data);
    call_over(c, c->is_modern ? status : 200, &text);
}

void call_result(struct mcp_call *c, const struct buf *members) {
    AUTO_BUF text = BUF_INIT;
    struct jw j = JW_INIT(&text);
    rpc_begin_response(&j, c->id);
    jw_key(&j, "result");
    jw_object(&j);
    if (c->is_modern)
        jw_key_str(&j, "resultType", "complete");
    if (members->len) {
        buf_adds(&text, j.comma ? "," : "");
        buf_add(&text, members->data, members->len);
        j.comma = true;
    }
    if (c->is_modern || c->meta.len) {
        jw_key(&j, "_meta");
        jw_object(&j);
        buf_add(&text, c->meta.data, c->meta.len);
        j.comma = c->meta.len > 0;
        if (c->is_modern) {
            jw_key(&j, META_SERVER);
            list_put_server(c->m, &j);
        }
        jw_object_end(&j);
    }
    jw_object_end(&j);
    rpc_end(&j);
    call_over(c, 200, &text);
}

void call_cacheable(struct mcp_call *c, struct buf *members, unsigned ttl_ms, bool is_public) {
    struct jw j = {.to = members, .comma = members->len > 0};
    if (c->is_modern) {
        jw_key_uint(&j, "ttlMs", ttl_ms);
        jw_key_str(&j, "cacheScope", is_public ? "public" : "private");
    }
    call_result(c, members);
}

/* The stream expects one answer fewer, and gets none. */
static void call_let_go(struct mcp_call *c) {
    struct stream *to = c->to;
    c->to = NULL;
    if (to)
        stream_answer(to, 200, NULL);
}

void call_cancel(struct mcp_call *c) {
    if (c->is_cancelled)
        return;
    c->is_cancelled = true;
    call_let_go(c);
    if (c->on_cancel)
        c->on_cancel(c); /* which may answer: the call may be gone */
}

void call_alone(struct mcp_call *c) {
    c->to = NULL;
    if (c->is_modern)
        call_cancel(c);
}

/* ---- what is asked ---- */

const struct mcp_tool *mcp_tool(const struct mcp_call *c) {
    return c->tool;
}
const json_t *mcp_args(const struct mcp_call *c) {
    return c->args;
}
const char *mcp_uri(const struct mcp_call *c) {
    return json_string_value(json_object_get(c->params, "uri"));
}
const char *mcp_variable(const struct mcp_call *c, const char *name) {
    return uri_variable(&c->match, name);
}
struct mcp_asker *mcp_asker(const struct mcp_call *c) {
    return c->who;
}
void mcp_keep(struct mcp_call *c, void *state, void (*done)(void *state)) {
    c->state = state;
    c->state_done = done;
}
void *mcp_kept(const struct mcp_call *c) {
    return c->state;
}
void mcp_on_cancel(struct mcp_call *c, mcp_handler *fn) {
    c->on_cancel = fn;
}
bool mcp_is_cancelled(const struct mcp_call *c) {
    return c->is_cancelled;
}
bool mcp_can(const struct mcp_call *c, const char *capability) {
    return (c->can & era_can_of(capability)) != 0;
}

void mcp_log(struct mcp_call *c, const char *level, const char *logger, const char *json) {
    AUTO_BUF text = BUF_INIT;
    struct jw j = JW_INIT(&text);
    if (!c->m->host.logs || c->log_level < 0 || call_level(level) < c->log_level)
        return;
    rpc_begin_notification(&j, "notifications/message");
    jw_key(&j, "params");
    jw_object(&j);
    jw_key_str(&j, "level", level);
    if (logger)
        jw_key_str(&j, "logger", logger);
    jw_key(&j, "data");
    jw_raw(&j, json, strlen(json));
    jw_object_end(&j);
    rpc_end(&j);
    call_send(c, &text);
}

void mcp_break(struct mcp_call *c, unsigned retry_ms) {
    if (c->to)
        stream_break(c->to, retry_ms);
}

/* ---- the answer, part by part ---- */

void mcp_text(struct mcp_call *c, const char *text, size_t len) {
    content_text(&c->content, text, len);
}

static void add_vtext(struct mcp_call *c, const char *fmt, va_list args)
    __attribute__((format(printf, 2, 0)));
static void add_vtext(struct mcp_call *c, const char *fmt, va_list args) {
    char *text = NULL;
    int n = vasprintf(&text, fmt, args);
    if (n > 0)
        content_text(&c->content, text, (size_t)n);
    if (n >= 0)
        free(text);
}

void mcp_textf(struct mcp_call *c, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    add_vtext(c, fmt, args);
    va_end(args);
}

void mcp_image(struct mcp_call *c, const char *mime, const char *base64, size_t len) {
    content_media(&c->content, CONTENT_IMAGE, mime, base64, len);
}

void mcp_image_bytes(struct mcp_call *c, const char *mime, const void *data, size_t len) {
    AUTO_BUF text = BUF_INIT;
    if (len <= CONTENT_IMAGE_MAX)
        base64_encode(&text, data, len);
    content_media(&c->content, CONTENT_IMAGE, mime, text.data,
                  len <= CONTENT_IMAGE_MAX ? text.len : len / 3 * 4);
}

void mcp_audio(struct mcp_call *c, const char *mime, const char *base64, size_t len) {
    content_media(&c->content, CONTENT_AUDIO, mime, base64, len);
}

void mcp_link(struct mcp_call *c, const struct mcp_link *l) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    content_put_link(&j, l, true);
    content_ready(&c->content, &json);
}

/* The object of a resource's contents, up to its value. */
static void open_contents(struct jw *j, const char *uri, const char *mime, const char *key) {
    jw_object(j);
    jw_key_str(j, "uri", uri);
    if (mime)
        jw_key_str(j, "mimeType", mime);
    jw_key(j, key);
}

static void put_contents(struct jw *j, const char *uri, const char *mime, const char *key,
                         const struct buf *value) {
    open_contents(j, uri, mime, key);
    jw_strn(j, value->data, value->len);
    jw_object_end(j);
}

static void embed(struct mcp_call *c, const char *uri, const char *mime, const char *key,
                  const struct buf *value) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_str(&j, "type", "resource");
    jw_key(&j, "resource");
    put_contents(&j, uri, mime, key, value);
    jw_object_end(&j);
    content_ready(&c->content, &json);
}

void mcp_embed_text(struct mcp_call *c, const char *uri, const char *mime, const char *text,
                    size_t len) {
    const struct buf value = {.data = (char *)text, .len = len};
    embed(c, uri, mime, "text", &value);
}

void mcp_embed_blob(struct mcp_call *c, const char *uri, const char *mime, const void *data,
                    size_t len) {
    AUTO_BUF value = BUF_INIT;
    base64_encode(&value, data, len);
    embed(c, uri, mime, "blob", &value);
}

void mcp_whole_at(struct mcp_call *c, const struct mcp_link *l) {
    content_whole(&c->content, l);
}

void mcp_structured(struct mcp_call *c, const char *json, size_t len) {
    buf_clear(&c->structured);
    buf_add(&c->structured, json, len);
}

void mcp_meta(struct mcp_call *c, const char *key, const char *json, size_t len) {
    struct jw j = {.to = &c->meta, .comma = c->meta.len > 0};
    jw_key(&j, key);
    jw_raw(&j, json, len);
}

/* One more in an array that the answer has. */
static struct jw next_item(struct mcp_call *c) {
    c->nitems++;
    return (struct jw){.to = &c->items, .comma = c->items.len > 0};
}

void mcp_contents_text(struct mcp_call *c, const char *uri, const char *mime, const char *text,
                       size_t len) {
    const struct buf value = {.data = (char *)text, .len = len};
    struct jw j = next_item(c);
    put_contents(&j, uri, mime, "text", &value);
}

void mcp_contents_blob(struct mcp_call *c, const char *uri, const char *mime, const void *data,
                       size_t len) {
    AUTO_BUF value = BUF_INIT;
    base64_encode(&value, data, len);
    mcp_contents_inside(c, uri, mime, true, &value);
}

void mcp_contents_inside(struct mcp_call *c, const char *uri, const char *mime, bool is_blob,
                         const struct buf *inside) {
    struct jw j = next_item(c);
    open_contents(&j, uri, mime, is_blob ? "blob" : "text");
    jw_escaped(&j, inside->data, inside->len);
    jw_object_end(&j);
}

void mcp_listed(struct mcp_call *c, const struct mcp_link *l) {
    if (c->nitems >= LISTED_MAX)
        return;
    struct jw j = next_item(c);
    content_put_link(&j, l, false);
}

void mcp_complete(struct mcp_call *c, const char *value) {
    if (c->nitems++ >= COMPLETE_MAX)
        return;
    struct jw j = {.to = &c->items, .comma = c->items.len > 0};
    jw_str(&j, value);
}

void mcp_message(struct mcp_call *c, const char *role) {
    content_role(&c->content, role);
}

/* ---- the answer goes out ---- */

static void put_array(struct jw *j, const char *key, const struct buf *inside) {
    jw_key(j, key);
    jw_array(j);
    buf_add(j->to, inside->data, inside->len);
    jw_array_end(j);
}

static void put_completion(struct mcp_call *c, struct jw *j) {
    jw_key(j, "completion");
    jw_object(j);
    put_array(j, "values", &c->items);
    jw_key_uint(j, "total", c->nitems);
    jw_key_bool(j, "hasMore", c->nitems > COMPLETE_MAX);
    jw_object_end(j);
}

static void put_tool(struct mcp_call *c, struct jw *j, bool is_error) {
    jw_key(j, "content");
    content_put(j, &c->content, is_error, c->tool && c->tool->is_void);
    if (c->structured.len) {
        jw_key(j, "structuredContent");
        jw_raw(j, c->structured.data, c->structured.len);
    }
    if (is_error || !c->is_modern)
        jw_key_bool(j, "isError", is_error);
}

static void put_prompt(struct mcp_call *c, struct jw *j) {
    if (c->prompt->description)
        jw_key_str(j, "description", c->prompt->description);
    jw_key(j, "messages");
    content_put_messages(j, &c->content);
}

void call_finish(struct mcp_call *c, bool is_error) {
    AUTO_BUF members = BUF_INIT;
    struct jw j = JW_INIT(&members);
    switch (c->kind) {
    case CALL_LIST:
        c->listing++;
        list_resources_more(c);
        return;
    case CALL_READ:
        put_array(&j, "contents", &c->items);
        call_cacheable(c, &members, 0, false);
        return;
    case CALL_TOOL:
        put_tool(c, &j, is_error);
        break;
    case CALL_PROMPT:
        put_prompt(c, &j);
        break;
    case CALL_COMPLETE:
        put_completion(c, &j);
        break;
    case CALL_SIMPLE:
        break;
    }
    call_result(c, &members);
}

void mcp_answer(struct mcp_call *c) {
    call_finish(c, false);
}

/* What is no tool has no isError. */
void mcp_answer_error(struct mcp_call *c) {
    if (c->kind == CALL_TOOL) {
        call_finish(c, true);
        return;
    }
    AUTO_BUF text = BUF_INIT;
    for (unsigned i = 0; i < c->content.n; i++)
        if (c->content.parts[i].kind == CONTENT_TEXT)
            buf_add(&text, c->content.parts[i].bytes.data, c->content.parts[i].bytes.len);
    call_error(c, 200, RPC_INTERNAL, text.data, NULL);
}

void mcp_answer_errorf(struct mcp_call *c, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    add_vtext(c, fmt, args);
    va_end(args);
    mcp_answer_error(c);
}

void mcp_fail(struct mcp_call *c, int code, const char *message, const char *data) {
    call_error(c, code == RPC_CAPABILITY ? 400 : 200, code, message, data);
}

void mcp_fail_no_resource(struct mcp_call *c) {
    AUTO_BUF data = BUF_INIT;
    struct jw j = JW_INIT(&data);
    jw_object(&j);
    jw_key_str(&j, "uri", mcp_uri(c));
    jw_object_end(&j);
    call_error(c, 200, c->is_modern ? RPC_PARAMS : RPC_NO_RESOURCE, "there is no such resource",
               data.data);
}

void mcp_fail_capability(struct mcp_call *c, const char *capability) {
    AUTO_BUF data = BUF_INIT;
    AUTO_BUF message = BUF_INIT;
    struct jw j = JW_INIT(&data);
    jw_object(&j);
    jw_key(&j, "requiredCapabilities");
    jw_object(&j);
    jw_key(&j, capability);
    jw_object(&j);
    jw_object_end(&j);
    jw_object_end(&j);
    jw_object_end(&j);
    buf_addf(&message, "this needs a client with the capability %s", capability);
    call_error(c, 400, c->is_modern ? RPC_CAPABILITY : RPC_PARAMS, message.data, data.data);
}
