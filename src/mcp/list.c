/* See list.h. */

#include "mcp/list.h"

#include "http/openapi_schema.h"
#include "mcp/internal.h"

#include <string.h>

#define NO_SCHEMA "{\"type\":\"object\",\"additionalProperties\":false}"

/* ---- the server ---- */

void list_put_server(const struct mcp *m, struct jw *j) {
    jw_object(j);
    jw_key_str(j, "name", m->host.name);
    if (m->host.title)
        jw_key_str(j, "title", m->host.title);
    jw_key_str(j, "version", m->host.version);
    jw_object_end(j);
}

static void put_flag(struct jw *j, const char *key, bool on) {
    if (on)
        jw_key_bool(j, key, true);
}

static void put_capability(struct jw *j, const char *name, bool changes, bool watches) {
    jw_key(j, name);
    jw_object(j);
    put_flag(j, "listChanged", changes);
    put_flag(j, "subscribe", watches);
    jw_object_end(j);
}

static bool list_has_completers(const struct mcp_registry *r) {
    for (size_t i = 0; r->templates && r->templates[i]; i++)
        if (r->templates[i]->complete)
            return true;
    for (size_t i = 0; r->prompts && r->prompts[i]; i++)
        if (r->prompts[i]->complete)
            return true;
    return false;
}

void list_put_capabilities(const struct mcp *m, struct jw *j, bool modern) {
    const struct mcp_registry *r = m->host.offers;
    bool changes = m->host.changes;
    jw_object(j);
    if (r->tools)
        put_capability(j, "tools", changes, false);
    if (r->resources || r->templates)
        put_capability(j, "resources", changes, m->host.watches);
    if (r->prompts)
        put_capability(j, "prompts", changes, false);
    if (list_has_completers(r))
        put_capability(j, "completions", false, false);
    if (m->host.logs && !modern)
        put_capability(j, "logging", false, false);
    jw_object_end(j);
}

/* Lists are short: all of one is its first page, and there is no cursor to go on from. */
static bool first_page(struct mcp_call *c) {
    if (!json_object_get(c->params, "cursor"))
        return true;
    call_error(c, 200, RPC_PARAMS, "this cursor is not one of ours: lists have one page", NULL);
    return false;
}

static struct jw list_begin(struct buf *members, const char *key) {
    struct jw j = JW_INIT(members);
    jw_key(&j, key);
    jw_array(&j);
    return j;
}

/* ---- tools ---- */

static void put_hints(struct jw *j, const struct mcp_tool *t, const struct mcp_asker *who) {
    unsigned hints = t->hints | (t->hints_for ? t->hints_for(who) : 0);
    jw_key(j, "annotations");
    jw_object(j);
    if (t->title)
        jw_key_str(j, "title", t->title);
    jw_key_bool(j, "readOnlyHint", (hints & MCP_READ_ONLY) != 0);
    if (!(hints & MCP_READ_ONLY)) {
        jw_key_bool(j, "destructiveHint", (hints & MCP_DESTRUCTIVE) != 0);
        jw_key_bool(j, "idempotentHint", (hints & MCP_IDEMPOTENT) != 0);
    }
    jw_key_bool(j, "openWorldHint", !(hints & MCP_CLOSED));
    jw_object_end(j);
}

static void put_input_schema(struct jw *j, const struct mcp_tool *t) {
    jw_key(j, "inputSchema");
    if (t->takes)
        schema_write_alone(j, t->takes);
    else
        jw_raw(j, t->takes_json ? t->takes_json : NO_SCHEMA,
               strlen(t->takes_json ? t->takes_json : NO_SCHEMA));
}

static void put_tool_of(struct jw *j, const struct mcp_tool *t, const struct mcp_asker *who) {
    AUTO_BUF help = BUF_INIT;
    buf_adds(&help, t->description);
    if (t->describe)
        t->describe(who, &help);
    jw_object(j);
    jw_key_str(j, "name", t->name);
    if (t->title)
        jw_key_str(j, "title", t->title);
    jw_key_str(j, "description", help.data);
    put_input_schema(j, t);
    if (t->gives) {
        jw_key(j, "outputSchema");
        schema_write_alone(j, t->gives);
    }
    put_hints(j, t, who);
    if (t->meta) {
        jw_key(j, "_meta");
        jw_raw(j, t->meta, strlen(t->meta));
    }
    jw_object_end(j);
}

bool list_offers(const struct mcp_tool *t, const struct mcp_asker *who) {
    bool in_sets = !t->sets || !who->sets || (t->sets & who->sets);
    return in_sets && (!t->is_there || t->is_there(who));
}

void list_tools(struct mcp_call *c) {
    const struct mcp_tool *const *tools = c->m->host.offers->tools;
    AUTO_BUF members = BUF_INIT;
    if (!first_page(c))
        return;
    struct jw j = list_begin(&members, "tools");
    for (; *tools; tools++)
        if (list_offers(*tools, c->who))
            put_tool_of(&j, *tools, c->who);
    jw_array_end(&j);
    call_cacheable(c, &members, LIST_TTL_MS, false);
}

/* ---- resources ---- */

/* Those of the table, and then each template's own. */
void list_resources(struct mcp_call *c) {
    const struct mcp_resource *const *r = c->m->host.offers->resources;
    if (!first_page(c))
        return;
    c->kind = CALL_LIST;
    for (; r && *r; r++) {
        const struct mcp_resource *one = *r;
        mcp_listed(c, &(struct mcp_link){.uri = one->uri,
                                         .name = one->name,
                                         .title = one->title,
                                         .description = one->description,
                                         .mime = one->mime});
    }
    list_resources_more(c);
}

void list_resources_more(struct mcp_call *c) {
    const struct mcp_template *const *t = c->m->host.offers->templates;
    while (t && t[c->listing] && !t[c->listing]->list)
        c->listing++;
    if (t && t[c->listing]) {
        t[c->listing]->list(c); /* the call may be gone */
        return;
    }
    AUTO_BUF members = BUF_INIT;
    struct jw j = list_begin(&members, "resources");
    buf_add(&members, c->items.data, c->items.len);
    jw_array_end(&j);
    c->kind = CALL_SIMPLE;
    call_cacheable(c, &members, 0, false);
}

void list_templates(struct mcp_call *c) {
    const struct mcp_template *const *t = c->m->host.offers->templates;
    AUTO_BUF members = BUF_INIT;
    if (!first_page(c))
        return;
    struct jw j = list_begin(&members, "resourceTemplates");
    for (; t && *t; t++) {
        const char *const said[][2] = {{"uriTemplate", (*t)->uri},
                                       {"name", (*t)->name},
                                       {"title", (*t)->title},
                                       {"description", (*t)->description},
                                       {"mimeType", (*t)->mime}};
        jw_object(&j);
        for (size_t i = 0; i < sizeof said / sizeof *said; i++)
            if (said[i][1])
                jw_key_str(&j, said[i][0], said[i][1]);
        jw_object_end(&j);
    }
    jw_array_end(&j);
    call_cacheable(c, &members, LIST_TTL_MS, true);
}

/* ---- prompts ---- */

static void put_arguments(struct jw *j, const struct schema *s) {
    jw_key(j, "arguments");
    jw_array(j);
    for (unsigned i = 0; i < s->n; i++) {
        jw_object(j);
        jw_key_str(j, "name", s->fields[i].name);
        if (s->fields[i].help)
            jw_key_str(j, "description", s->fields[i].help);
        jw_key_bool(j, "required", (s->fields[i].flags & FIELD_REQUIRED) != 0);
        jw_object_end(j);
    }
    jw_array_end(j);
}

void list_prompts(struct mcp_call *c) {
    const struct mcp_prompt *const *p = c->m->host.offers->prompts;
    AUTO_BUF members = BUF_INIT;
    if (!first_page(c))
        return;
    struct jw j = list_begin(&members, "prompts");
    for (; p && *p; p++) {
        jw_object(&j);
        jw_key_str(&j, "name", (*p)->name);
        if ((*p)->title)
            jw_key_str(&j, "title", (*p)->title);
        if ((*p)->description)
            jw_key_str(&j, "description", (*p)->description);
        if ((*p)->takes)
            put_arguments(&j, (*p)->takes);
        jw_object_end(&j);
    }
    jw_array_end(&j);
    call_cacheable(c, &members, LIST_TTL_MS, true);
}
