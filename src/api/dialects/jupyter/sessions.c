/* Jupyter's sessions: a notebook, or whatever else has a path, and its kernel. A session is a
 * member of its kernel's label and goes with it. */

#include "api/dialects/jupyter/jupyter.h"

#include "base/fd.h"
#include "engine/core/bounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT 4096 /* bytes of a path or name, as JSON: it is kept in a journal */

static const struct field which_fields[] = {
    {.name = "id", .type = FIELD_STRING, .flags = FIELD_NULLABLE, .help = "one that is there"},
    {.name = "name", .type = FIELD_STRING, .flags = FIELD_NULLABLE, .help = "a kernelspec"},
};
static const struct schema which_schema = {
    .name = "JupyterSessionKernel", .fields = which_fields, .n = 2, .open = true};

static const struct field session_fields[] = {
    {.name = "path", .type = FIELD_STRING, .flags = FIELD_NULLABLE},
    {.name = "name", .type = FIELD_STRING, .flags = FIELD_NULLABLE},
    {.name = "type", .type = FIELD_STRING, .flags = FIELD_NULLABLE},
    {.name = "kernel", .type = FIELD_OBJECT, .flags = FIELD_NULLABLE, .of = &which_schema},
    {.name = "env", .type = FIELD_MAP, .flags = FIELD_MAX | FIELD_NULLABLE, .max = RUN_MAX_ENV},
};
static const struct schema jupyter_session_schema = {
    .name = "JupyterSession", .fields = session_fields, .n = 5, .open = true, .any_type = true};

/* ---- finding them ---- */

struct search {
    const char *member, *value;
    struct jupyter_hub *found;
};

static void sessions_look(void *arg, struct jupyter_hub *h) {
    struct search *s = arg;
    const char *value = jupyter_session_text(h, s->member);
    if (value && strcmp(value, s->value) == 0)
        s->found = h;
}

static struct jupyter_hub *sessions_find(struct call *c, const char *member, const char *value) {
    struct search s = {.member = member, .value = value};
    if (value && *value)
        jupyter_each(c, sessions_look, &s);
    return s.found;
}

/* ---- models ---- */

/* Without a copy of its texts. */
static void put_session(struct jupyter_hub *h, struct rope *to) {
    AUTO_BUF kernel = BUF_INIT;
    struct jw j = JW_INIT(&kernel);
    jupyter_model(h, &j);
    rope_add_part(to, h->session_json, 0, h->session_gap);
    rope_add(to, &kernel);
    rope_add_part(to, h->session_json, h->session_gap, h->session_json->bytes.len - h->session_gap);
}

static void sessions_reply(struct call *c, struct jupyter_hub *h, int status) {
    AUTO_ROPE json = ROPE_INIT;
    char location[120];
    snprintf(location, sizeof location, "/api/sessions/%.60s", jupyter_session_text(h, "id"));
    if (status == 201)
        http_add_header(c->req, "Location", location);
    put_session(h, &json);
    http_reply_rope(c->req, status, "application/json", &json);
}

static void put_one_session(void *arg, struct jupyter_hub *h) {
    struct rope *to = arg;
    if (!h->session_json)
        return;
    rope_adds(to, to->n ? "," : "[");
    put_session(h, to);
}

static void do_jupyter_sessions(struct call *c) {
    AUTO_ROPE json = ROPE_INIT;
    jupyter_each(c, put_one_session, &json);
    rope_adds(&json, json.n ? "]" : "[]");
    http_reply_rope(c->req, 200, "application/json", &json);
}

/* ---- one ---- */

static bool texts_are_good(struct call *c) {
    static const char *const members[] = {"path", "name", "type"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const json_t *text = json_object_get(c->body, members[i]);
        if (!json_is_string(text) || json_dumpb(text, NULL, 0, JSON_ENCODE_ANY) <= MAX_TEXT + 2)
            continue;
        struct problem p = {
            .status = 400, .code = "bad_value", .remediation = "choose a shorter one"};
        snprintf(p.text, sizeof p.text, "%s has more than %d bytes as JSON", members[i], MAX_TEXT);
        call_problem(c, &p);
        return false;
    }
    return true;
}

static void copy_texts(const struct call *c, json_t *session) {
    static const char *const members[] = {"path", "name", "type"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_t *value = json_object_get(c->body, members[i]);
        if (json_is_string(value))
            json_object_set(session, members[i], value);
    }
}

static struct jupyter_hub *sessions_named(struct call *c) {
    struct jupyter_hub *h = sessions_find(c, "id", c->params[0]);
    struct problem p = {.status = 404,
                        .code = "no_such_session",
                        .remediation = "GET /api/sessions lists those there"};
    if (h)
        return h;
    snprintf(p.text, sizeof p.text, "Session not found: %.60s", c->params[0]);
    call_problem(c, &p);
    return NULL;
}

static bool is_change(const struct call *c) {
    return strcmp(c->route->doc.method, "PATCH") == 0;
}

bool jupyter_is_session(const struct call *c) {
    const struct route_table *t = &jupyter_sessions_routes;
    return c->route >= t->routes && c->route < t->routes + t->n;
}

/* A kernel for the call's session: one that is there, or one that is to be made. */
void jupyter_session_made(struct call *c, struct jupyter_hub *h) {
    bool change = is_change(c);
    struct jupyter_hub *old = change ? sessions_find(c, "id", c->params[0]) : NULL;
    json_t *session = old ? json_copy(json_object_get(old->label, "session")) : NULL;
    char id[ID_MAX], uuid[JUPYTER_UUID];
    if (!session) {
        id_make("ses_", id, sizeof id);
        jupyter_uuid(id, uuid);
        session = json_pack("{s:s, s:s, s:s, s:s}", "id", uuid, "path", "", "name", "", "type",
                            "notebook");
    }
    copy_texts(c, session);
    jupyter_set_session(h, session);
    if (old && old != h) { /* as Jupyter does when a notebook gets another kernel */
        jupyter_set_session(old, NULL);
        jupyter_end(old);
    }
    sessions_reply(c, h, change ? 200 : 201);
}

static void choose_kernel(struct call *c) {
    const json_t *kernel = json_object_get(c->body, "kernel");
    const char *id = field_str(kernel, "id", NULL);
    struct jupyter_hub *h = id && *id ? jupyter_named(c, id) : NULL;
    if (h)
        jupyter_session_made(c, h);
    else if (!id || !*id)
        jupyter_make(c, field_str(kernel, "name", NULL));
}

static void do_jupyter_session_new(struct call *c) {
    if (!texts_are_good(c))
        return;
    struct jupyter_hub *h = sessions_find(c, "path", field_str(c->body, "path", NULL));
    if (h)
        sessions_reply(c, h, 201);
    else
        choose_kernel(c);
}

static void do_jupyter_session(struct call *c) {
    struct jupyter_hub *h = sessions_named(c);
    if (h)
        sessions_reply(c, h, 200);
}

static void do_jupyter_session_change(struct call *c) {
    struct jupyter_hub *h = sessions_named(c);
    if (!h || !texts_are_good(c))
        return;
    if (json_object_size(json_object_get(c->body, "kernel")))
        choose_kernel(c);
    else
        jupyter_session_made(c, h);
}

static void do_jupyter_session_delete(struct call *c) {
    struct jupyter_hub *h = sessions_named(c);
    if (!h)
        return;
    jupyter_end(h);
    http_reply(c->req, 204, NULL, "", 0);
}

static const struct field notebook_fields[] = {
    HAS_OR_NULL("path", FIELD_STRING),
    HAS_OR_NULL("name", FIELD_STRING),
};
static const struct schema notebook_schema = {SCHEMA("JupyterNotebook", notebook_fields)};
static const struct field reply_fields[] = {
    HAS_OR_NULL("id", FIELD_STRING),
    HAS_OR_NULL("path", FIELD_STRING),
    HAS_OR_NULL("name", FIELD_STRING),
    HAS_OR_NULL("type", FIELD_STRING),
    HAS("kernel", OBJECT(jupyter_model_schema)),
    MAY_HAVE("notebook", OBJECT(notebook_schema)),
};
static const struct schema reply_schema = {SCHEMA("JupyterSessionModel", reply_fields)};
static const struct schema sessions_schema = {SCHEMA_OF_LIST("JupyterSessions", reply_schema)};

#define ERRORS_OF_MAKING                                                                           \
    ERRORS_OF_START "no_such_kernelspec no_such_kernel too_many_sandboxes kernel_failed "          \
                    "sandbox_gone cannot_limit sandbox_paused 400:bad_value "

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"GET", "/api/sessions", "Jupyter: list sessions", "jupyter", NULL, NULL, 200, "the sessions",
      JSON_TYPE, .gives = &sessions_schema}, do_jupyter_sessions},
    {{"POST", "/api/sessions", "Jupyter: a session, with a kernel", "jupyter",
      &jupyter_session_schema, NULL, 201, "the session", JSON_TYPE, .gives = &reply_schema,
      .errors = ERRORS_OF_MAKING, .replays = true}, do_jupyter_session_new,
     .body_max = MB},
    {{"GET", "/api/sessions/{session_id}", "Jupyter: look at a session", "jupyter", NULL, NULL, 200,
      "the session", JSON_TYPE, .gives = &reply_schema, .errors = "no_such_session"},
     do_jupyter_session},
    {{"PATCH", "/api/sessions/{session_id}", "Jupyter: another path, name or kernel", "jupyter",
      &jupyter_session_schema, NULL, 200, "the session", JSON_TYPE, .gives = &reply_schema,
      .errors = ERRORS_OF_MAKING "no_such_session"}, do_jupyter_session_change,
     .body_max = MB},
    {{"DELETE", "/api/sessions/{session_id}", "Jupyter: end a session and its kernel", "jupyter",
      NULL, NULL, 204, "nothing", NULL, .errors = "no_such_session"}, do_jupyter_session_delete},
};
/* clang-format on */
const struct route_table jupyter_sessions_routes = ROUTE_TABLE(routes);
