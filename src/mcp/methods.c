/* See methods.h. A request is answered by the protocol itself, or by the handler of the registry
 * that its name or URI leads to. */

#include "mcp/methods.h"

#include "base/fd.h"
#include "http/fields.h"
#include "mcp/internal.h"
#include "mcp/listen.h"
#include "mcp/mirror.h"
#include "mcp/session.h"
#include "mcp/stream.h"

#include <string.h>

#define FAULTS_TOLD  10
#define DISCOVER_TTL 300000 /* ms */

/* ---- the server itself ---- */

static void put_instructions(const struct mcp_call *c, struct jw *j) {
    AUTO_BUF text = BUF_INIT;
    if (c->m->host.instruct)
        c->m->host.instruct(c->who, &text);
    if (text.len)
        jw_key_str(j, "instructions", text.data);
}

static void do_initialize(struct mcp_call *c, struct visit *v) {
    const char *wanted = json_string_value(json_object_get(c->params, "protocolVersion"));
    const char *version = era_legacy(wanted) ? era_legacy(wanted) : MCP_LEGACY_NEWEST;
    unsigned can = era_capabilities(json_object_get(c->params, "capabilities"));
    AUTO_BUF members = BUF_INIT;
    char id[TOKEN_MAX];
    if (!wanted) {
        call_error(c, 400, RPC_PARAMS, "initialize has no protocolVersion", NULL);
        return;
    }
    session_new(v, version, can, id, sizeof id);
    stream_header(c->to, "Mcp-Session-Id", id);
    struct jw j = JW_INIT(&members);
    jw_key_str(&j, "protocolVersion", version);
    jw_key(&j, "capabilities");
    list_put_capabilities(c->m, &j, false);
    jw_key(&j, "serverInfo");
    list_put_server(c->m, &j);
    put_instructions(c, &j);
    call_result(c, &members);
}

static void do_discover(struct mcp_call *c, struct visit *v) {
    AUTO_BUF members = BUF_INIT;
    struct jw j = JW_INIT(&members);
    (void)v;
    jw_key(&j, "supportedVersions");
    era_put_versions(&j, false);
    jw_key(&j, "capabilities");
    list_put_capabilities(c->m, &j, true);
    put_instructions(c, &j);
    call_cacheable(c, &members, DISCOVER_TTL, false);
}

static void answer_nothing(struct mcp_call *c) {
    AUTO_BUF members = BUF_INIT;
    call_result(c, &members);
}

static void do_ping(struct mcp_call *c, struct visit *v) {
    (void)v;
    answer_nothing(c);
}

static void do_set_level(struct mcp_call *c, struct visit *v) {
    int level = call_level(json_string_value(json_object_get(c->params, "level")));
    if (level < 0) {
        call_error(
            c, 400, RPC_PARAMS,
            "level is one of debug, info, notice, warning, error, critical, alert, emergency",
            NULL);
        return;
    }
    session_set_level(c->m, v->who, level);
    answer_nothing(c);
}

static void watch(struct mcp_call *c, bool on) {
    const char *uri = mcp_uri(c);
    if (!uri || strlen(uri) > URI_MAX)
        call_error(c, 400, RPC_PARAMS, "uri is a string of at most 8192 bytes", NULL);
    else if (!session_watch(c->m, c->who, uri, on))
        call_error(c, 400, RPC_PARAMS, "a session watches at most 32 resources", NULL);
    else
        answer_nothing(c);
}

static void do_subscribe(struct mcp_call *c, struct visit *v) {
    (void)v;
    watch(c, true);
}

static void do_unsubscribe(struct mcp_call *c, struct visit *v) {
    (void)v;
    watch(c, false);
}

/* ---- tools ---- */

static const char *name_of(const struct mcp_call *c) {
    return json_string_value(json_object_get(c->params, "name"));
}

/* "timeout_s: Input should be …" */
static void add_fault(const json_t *fault, struct buf *to) {
    const json_t *loc = json_object_get(fault, "loc");
    buf_adds(to, to->len ? "\n" : "");
    for (size_t i = 1; i < json_array_size(loc); i++) {
        const json_t *part = json_array_get(loc, i);
        if (json_is_string(part))
            buf_addf(to, "%s%.200s", i > 1 ? "." : "", json_string_value(part));
        else
            buf_addf(to, "[%lld]", (long long)json_integer_value(part));
    }
    buf_addf(to, ": %s", json_string_value(json_object_get(fault, "msg")));
}

static bool args_fit(struct mcp_call *c, const struct schema *s, struct buf *faults) {
    AUTO_BUF json = BUF_INIT;
    json_t *tree = NULL;
    struct err e;
    struct jw j = JW_INIT(&json);
    jw_array(&j);
    unsigned n = s ? fields_check(s, c->args, &j) : 0;
    jw_array_end(&j);
    if (n == 0)
        return true;
    if (json_read(json.data, json.len, JSON_DEPTH_MAX, &tree, &e) == 0) {
        for (size_t i = 0; i < json_array_size(tree) && i < FAULTS_TOLD; i++)
            add_fault(json_array_get(tree, i), faults);
    }
    json_decref(tree);
    return false;
}

/* The object `arguments`; false: it is none, and the call has its answer. */
static bool take_args(struct mcp_call *c) {
    json_t *args = json_object_get(c->params, "arguments");
    if (args && !json_is_object(args)) {
        call_error(c, 400, RPC_PARAMS, "arguments is not an object", NULL);
        return false;
    }
    c->args = args ? json_incref(args) : json_object();
    return true;
}

static size_t find_tool(const struct mcp_call *c, const char *name) {
    const struct mcp_tool *const *tools = c->m->host.offers->tools;
    size_t i = 0;
    while (tools[i] && !(strcmp(tools[i]->name, name) == 0 && list_offers(tools[i], c->who)))
        i++;
    return i;
}

static void do_tool(struct mcp_call *c, struct visit *v) {
    const char *name = name_of(c);
    size_t i = name ? find_tool(c, name) : 0;
    AUTO_BUF faults = BUF_INIT;
    c->tool = name ? c->m->host.offers->tools[i] : NULL;
    if (!c->tool) {
        buf_addf(&faults, "there is no tool %.128s", name ? name : "without a name");
        call_error(c, 200, RPC_PARAMS, faults.data, NULL);
        return;
    }
    c->kind = CALL_TOOL;
    if (!take_args(c) || (c->is_modern && !mirror_check(c, v->req, c->m->schemas[i])) ||
        ask_resumed(c))
        return;
    if (!args_fit(c, c->tool->takes, &faults)) {
        mcp_answer_errorf(c, "%s", faults.data);
        return;
    }
    progress_begin(c);
    c->tool->call(c);
}

/* ---- resources ---- */

static mcp_handler *find_resource(struct mcp_call *c, const char *uri) {
    const struct mcp_resource *const *r = c->m->host.offers->resources;
    const struct mcp_template *const *t = c->m->host.offers->templates;
    for (; r && *r; r++)
        if (strcmp((*r)->uri, uri) == 0)
            return (*r)->read;
    for (; t && *t; t++) {
        if (!uri_matches((*t)->uri, uri, &c->match))
            continue;
        c->template = *t;
        return (*t)->read;
    }
    return NULL;
}

static void do_read(struct mcp_call *c, struct visit *v) {
    const char *uri = mcp_uri(c);
    (void)v;
    if (!uri) {
        call_error(c, 400, RPC_PARAMS, "uri is not a string", NULL);
        return;
    }
    mcp_handler *read = find_resource(c, uri);
    c->kind = CALL_READ;
    if (!read)
        mcp_fail_no_resource(c);
    else if (!ask_resumed(c)) {
        progress_begin(c);
        read(c);
    }
}

/* ---- prompts and completion ---- */

static const struct mcp_prompt *find_prompt(const struct mcp_call *c, const char *name) {
    const struct mcp_prompt *const *p = c->m->host.offers->prompts;
    while (name && p && *p && strcmp((*p)->name, name) != 0)
        p++;
    return name && p ? *p : NULL;
}

static void do_prompt(struct mcp_call *c, struct visit *v) {
    AUTO_BUF faults = BUF_INIT;
    (void)v;
    c->prompt = find_prompt(c, name_of(c));
    if (!c->prompt) {
        call_error(c, 200, RPC_PARAMS, "there is no such prompt", NULL);
        return;
    }
    c->kind = CALL_PROMPT;
    if (!take_args(c) || ask_resumed(c))
        return;
    if (args_fit(c, c->prompt->takes, &faults))
        c->prompt->get(c);
    else
        call_error(c, 200, RPC_PARAMS, faults.data, NULL);
}

static mcp_completer *find_completer(const struct mcp_call *c, const json_t *ref, bool *there) {
    const char *type = json_string_value(json_object_get(ref, "type"));
    const char *uri = json_string_value(json_object_get(ref, "uri"));
    const struct mcp_template *const *t = c->m->host.offers->templates;
    *there = false;
    if (type && strcmp(type, "ref/prompt") == 0) {
        const struct mcp_prompt *p =
            find_prompt(c, json_string_value(json_object_get(ref, "name")));
        *there = p != NULL;
        return p ? p->complete : NULL;
    }
    for (; type && uri && strcmp(type, "ref/resource") == 0 && t && *t; t++) {
        if (strcmp((*t)->uri, uri) != 0)
            continue;
        *there = true;
        return (*t)->complete;
    }
    return NULL;
}

static void do_complete(struct mcp_call *c, struct visit *v) {
    const json_t *argument = json_object_get(c->params, "argument");
    const char *name = json_string_value(json_object_get(argument, "name"));
    const char *value = json_string_value(json_object_get(argument, "value"));
    bool there;
    mcp_completer *complete = find_completer(c, json_object_get(c->params, "ref"), &there);
    (void)v;
    if (!there || !name || !value) {
        call_error(c, 200, RPC_PARAMS,
                   "ref names no prompt or template, or argument has no name and value", NULL);
        return;
    }
    c->kind = CALL_COMPLETE;
    if (complete)
        complete(c, name, value);
    else
        mcp_answer(c);
}

/* ---- which there are ---- */

static void do_tools(struct mcp_call *c, struct visit *v) {
    (void)v;
    list_tools(c);
}
static void do_resources(struct mcp_call *c, struct visit *v) {
    (void)v;
    list_resources(c);
}
static void do_templates(struct mcp_call *c, struct visit *v) {
    (void)v;
    list_templates(c);
}
static void do_prompts(struct mcp_call *c, struct visit *v) {
    (void)v;
    list_prompts(c);
}

enum { LEGACY = 1, MODERN = 2, BOTH = 3 };
enum needs { NOTHING, TOOLS, RESOURCES, PROMPTS, EITHER, LOGS, WATCHES, LISTENS };

static const struct method {
    const char *name;
    int eras;
    enum needs needs;
    void (*fn)(struct mcp_call *c, struct visit *v);
} methods[] = {
    {"initialize", LEGACY, NOTHING, do_initialize},
    {"ping", LEGACY, NOTHING, do_ping},
    {"logging/setLevel", LEGACY, LOGS, do_set_level},
    {"resources/subscribe", LEGACY, WATCHES, do_subscribe},
    {"resources/unsubscribe", LEGACY, WATCHES, do_unsubscribe},
    {"server/discover", MODERN, NOTHING, do_discover},
    {"subscriptions/listen", MODERN, LISTENS, listen_modern},
    {"tools/list", BOTH, TOOLS, do_tools},
    {"tools/call", BOTH, TOOLS, do_tool},
    {"resources/list", BOTH, RESOURCES, do_resources},
    {"resources/templates/list", BOTH, RESOURCES, do_templates},
    {"resources/read", BOTH, RESOURCES, do_read},
    {"prompts/list", BOTH, PROMPTS, do_prompts},
    {"prompts/get", BOTH, PROMPTS, do_prompt},
    {"completion/complete", BOTH, EITHER, do_complete},
};

static bool is_offered(const struct mcp_host *h, enum needs needs) {
    const struct mcp_registry *r = h->offers;
    switch (needs) {
    case NOTHING:
        return true;
    case TOOLS:
        return r->tools != NULL;
    case RESOURCES:
        return r->resources || r->templates;
    case PROMPTS:
        return r->prompts != NULL;
    case EITHER:
        return r->templates || r->prompts;
    case LOGS:
        return h->logs;
    case WATCHES:
        return h->watches;
    case LISTENS:
        return h->changes || h->watches;
    }
    return false;
}

void method_call(struct mcp_call *c, struct visit *v, const char *method) {
    int era = c->is_modern ? MODERN : LEGACY;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (!(methods[i].eras & era) || strcmp(methods[i].name, method) != 0 ||
            !is_offered(&c->m->host, methods[i].needs))
            continue;
        methods[i].fn(c, v);
        return;
    }
    AUTO_BUF message = BUF_INIT;
    buf_addf(&message, "there is no method %.100s", method);
    call_error(c, 404, RPC_NO_METHOD, message.data, NULL);
}

/* SECURITY: without a session two clients of one key may have used the same id: then it is nobody's
 * that is meant. */
static void cancel_one(struct visit *v, const json_t *id) {
    struct mcp_call *meant = NULL;
    for (struct mcp_call *c = v->m->calls; c; c = c->next) {
        if (!call_is(c, v->who, id) || c->is_cancelled)
            continue;
        if (meant)
            return;
        meant = c;
    }
    if (meant)
        call_cancel(meant);
}

void method_notify(struct visit *v, const struct rpc *r) {
    const json_t *id = json_object_get(r->params, "requestId");
    if (strcmp(r->method, "notifications/cancelled") == 0 && id)
        cancel_one(v, id);
}
