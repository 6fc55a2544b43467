/* See listen.h. */

#include "mcp/listen.h"

#include "base/list.h"
#include "http/http.h"
#include "mcp/internal.h"
#include "mcp/session.h"
#include "mcp/sse.h"
#include "mcp/stream.h"

#include <stdlib.h>
#include <string.h>

struct listener {
    struct listener *next;
    struct mcp *m;       /* borrowed */
    struct visit *visit; /* borrowed */
    bool is_modern, lists[MCP_LISTS_];
    json_t *id;   /* owned: of the request; or NULL */
    json_t *uris; /* owned: an object whose keys they are; or NULL */
    struct timer alive;
};

static const char *const wishes[MCP_LISTS_] = {
    [MCP_TOOLS] = "toolsListChanged",
    [MCP_PROMPTS] = "promptsListChanged",
    [MCP_RESOURCES] = "resourcesListChanged",
};
static const char *const methods[MCP_LISTS_] = {
    [MCP_TOOLS] = "notifications/tools/list_changed",
    [MCP_PROMPTS] = "notifications/prompts/list_changed",
    [MCP_RESOURCES] = "notifications/resources/list_changed",
};

static void listen_on_alive(struct timer *t) {
    struct listener *l = t->arg;
    http_write(l->visit->req, SSE_ALIVE, strlen(SSE_ALIVE));
    loop_timer_in_ms(l->m->host.loop, t, STREAM_ALIVE_MS);
}

static bool listen_has_room(const struct visit *v) {
    unsigned own = 0;
    for (const struct listener *l = v->m->listeners; l; l = l->next)
        own += strcmp(l->visit->who->owner, v->who->owner) == 0;
    return v->m->nlisteners < LISTENERS_MAX && own < LISTENERS_MAX / 10;
}

static void listen_begin(struct visit *v) {
    http_add_header(v->req, "Cache-Control", "no-cache");
    http_add_header(v->req, "X-Accel-Buffering", "no");
    http_set_sign(v->req, SSE_ALIVE);
    http_stream(v->req, 200, "text/event-stream");
}

static struct listener *listener_new(struct visit *v) {
    struct listener *l = xcalloc(1, sizeof *l);
    *l = (struct listener){.m = v->m, .visit = v, .is_modern = v->is_modern};
    l->alive = (struct timer){.fn = listen_on_alive, .arg = l};
    v->listener = l;
    v->m->nlisteners++;
    LIST_PUSH(&v->m->listeners, l, next);
    loop_timer_in_ms(v->m->host.loop, &l->alive, STREAM_ALIVE_MS);
    return l;
}

void listen_left(struct listener *l) {
    loop_timer_stop(l->m->host.loop, &l->alive);
    l->visit->listener = NULL;
    l->m->nlisteners--;
    LIST_REMOVE(&l->m->listeners, l, next);
    json_decref(l->id);
    json_decref(l->uris);
    free(l);
}

/* ---- what is told ---- */

/* SECURITY: who does not read gets no more: the list is asked for anew anyway. */
static void tell(struct listener *l, const struct buf *message) {
    AUTO_BUF event = BUF_INIT;
    if (http_backlog(l->visit->req) > HTTP_LOW_WATER)
        return;
    sse_write(&event, NULL, message->data, message->len);
    http_write(l->visit->req, event.data, event.len);
}

/* The inside of params is open. */
static struct jw begin_params(const struct listener *l, struct buf *to, const char *method) {
    struct jw j = JW_INIT(to);
    rpc_begin_notification(&j, method);
    jw_key(&j, "params");
    jw_object(&j);
    if (l->is_modern) {
        jw_key(&j, "_meta");
        jw_object(&j);
        jw_key(&j, META_SUBSCRIPTION);
        jw_json(&j, l->id, "null");
        jw_object_end(&j);
    }
    return j;
}

static void end_params(struct jw *j) {
    jw_object_end(j);
    rpc_end(j);
}

void mcp_changed(struct mcp *m, enum mcp_list which) {
    for (struct listener *l = m->listeners; l; l = l->next) {
        AUTO_BUF text = BUF_INIT;
        if (!l->lists[which])
            continue;
        struct jw j = begin_params(l, &text, methods[which]);
        end_params(&j);
        tell(l, &text);
    }
}

void mcp_updated(struct mcp *m, const char *uri) {
    for (struct listener *l = m->listeners; l; l = l->next) {
        AUTO_BUF text = BUF_INIT;
        if (l->is_modern ? !json_object_get(l->uris, uri) : !session_watches(m, l->visit->who, uri))
            continue;
        struct jw j = begin_params(l, &text, "notifications/resources/updated");
        jw_key_str(&j, "uri", uri);
        end_params(&j);
        tell(l, &text);
    }
}

/* ---- asked for ---- */

static bool listen_offers(const struct mcp *m, enum mcp_list which) {
    const struct mcp_registry *r = m->host.offers;
    const bool there[MCP_LISTS_] = {[MCP_TOOLS] = r->tools,
                                    [MCP_PROMPTS] = r->prompts,
                                    [MCP_RESOURCES] = r->resources || r->templates};
    return m->host.changes && there[which];
}

static void read_wishes(struct listener *l, const json_t *wanted) {
    const json_t *uris = json_object_get(wanted, "resourceSubscriptions");
    for (unsigned i = 0; i < MCP_LISTS_; i++)
        l->lists[i] = listen_offers(l->m, i) && json_is_true(json_object_get(wanted, wishes[i]));
    l->uris = json_object();
    for (size_t i = 0; l->m->host.watches && i < json_array_size(uris) && i < LISTEN_URIS; i++) {
        const char *uri = json_string_value(json_array_get(uris, i));
        if (uri && strlen(uri) <= URI_MAX)
            json_object_set_new(l->uris, uri, json_true());
    }
}

/* What of it will be told. */
static void acknowledge(struct listener *l) {
    AUTO_BUF text = BUF_INIT;
    const char *uri;
    json_t *ignored;
    struct jw j = begin_params(l, &text, "notifications/subscriptions/acknowledged");
    jw_key(&j, "notifications");
    jw_object(&j);
    for (unsigned i = 0; i < MCP_LISTS_; i++)
        if (l->lists[i])
            jw_key_bool(&j, wishes[i], true);
    if (json_object_size(l->uris)) {
        jw_key(&j, "resourceSubscriptions");
        jw_array(&j);
        json_object_foreach(l->uris, uri, ignored) {
            jw_str(&j, uri);
        }
        jw_array_end(&j);
    }
    jw_object_end(&j);
    end_params(&j);
    tell(l, &text);
}

void listen_modern(struct mcp_call *c, struct visit *v) {
    const json_t *wanted = json_object_get(c->params, "notifications");
    const json_t *uris = json_object_get(wanted, "resourceSubscriptions");
    if (!json_is_object(wanted) || (uris && !json_is_array(uris)) ||
        json_array_size(uris) > LISTEN_URIS) {
        call_error(c, 400, RPC_PARAMS,
                   "notifications is an object; its resourceSubscriptions has at most 100 URIs",
                   NULL);
        return;
    }
    if (!listen_has_room(v)) {
        call_error(c, 503, RPC_INTERNAL, "too many streams listen: close others", NULL);
        return;
    }
    json_t *id = json_incref(c->id);
    bool begun = stream_give_up(c->to);
    c->to = NULL;
    call_drop(c);
    if (!begun)
        listen_begin(v);
    struct listener *l = listener_new(v);
    l->id = id;
    read_wishes(l, wanted);
    acknowledge(l);
}

bool listen_legacy(struct visit *v) {
    if ((!v->m->host.changes && !v->m->host.watches) || !listen_has_room(v))
        return false;
    listen_begin(v);
    struct listener *l = listener_new(v);
    for (unsigned i = 0; i < MCP_LISTS_; i++)
        l->lists[i] = listen_offers(v->m, i);
    return true;
}
