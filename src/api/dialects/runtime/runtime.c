/* The dialect Sandbox Runtime: its replies and its sessions. Its errors are in errors.c, files in
 * files.c and read.c, what runs in sessions in run.c, handlers in handler.c.
 *
 * SECURITY: a session's id is a key in a table and nothing else; it is in no path and no command.
 */

#include "api/dialects/runtime/runtime.h"

#include "api/core/spec.h"
#include "api/jobs/live_requests.h"
#include "api/jobs/network_field.h"
#include "base/num.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER   "X-Sandbox-Dialect"
#define PLACE    "/workspace" /* where a session's files are, for its programs */
#define SIZE_MB  100
#define MAX_PIDS 100

static const char *const dialects[] = {"bare", "legacy"};

static const struct field session_fields[] = {
    {.name = "size",
     .type = FIELD_STRING,
     .flags = FIELD_NULLABLE,
     .fallback = "\"100M\"",
     .help = "of its disk: bytes, or with K, M or G"},
    {.name = "allow_network",
     .type = FIELD_BOOL,
     .flags = FIELD_NULLABLE,
     .help = "all of the network that the operator grants; as runtime_allow_network unless given"},
    FIELD_OF_NETWORK("instead: what it may reach"),
};
static const struct schema runtime_session_schema = {"RuntimeSession", session_fields, 3, true};

static const struct field cleanup_fields[] = {
    {.name = "force",
     .type = FIELD_BOOL,
     .flags = FIELD_NULLABLE,
     .fallback = "false",
     .help = "also those in which something runs"},
};
static const struct schema runtime_cleanup_schema = {"RuntimeCleanup", cleanup_fields, 1, true};

/* ---- replies ---- */

bool runtime_is_legacy(const struct call *c) {
    const char *asked = http_header(c->req, HEADER);
    return strcmp(asked ? asked : c->api->config->runtime.replies, dialects[1]) == 0;
}

bool runtime_enter(struct call *c) {
    const char *asked = http_header(c->req, HEADER);
    if (!asked || strcmp(asked, dialects[0]) == 0 || strcmp(asked, dialects[1]) == 0)
        return true;
    runtime_error(c, 400, "bad_value", HEADER " is \"%.60s\"; it may be bare or legacy", asked);
    return false;
}

void runtime_wrap(bool legacy, const struct rope *json, struct rope *to) {
    AUTO_BUF own = BUF_INIT;
    struct jw j = JW_INIT(&own);
    if (!legacy) {
        rope_add_rope(to, json);
        return;
    }
    jw_object(&j);
    rope_key_json(to, &j, "result", json);
    rope_key_json(to, &j, "full_result", json);
    jw_object_end(&j);
    rope_add(to, &own);
}

void runtime_reply_rope(struct call *c, struct rope *json) {
    AUTO_ROPE whole = ROPE_INIT;
    runtime_wrap(runtime_is_legacy(c), json, &whole);
    http_reply_rope(c->req, 200, "application/json", &whole);
    rope_done(json);
}

void runtime_reply(struct call *c, struct buf *json) {
    AUTO_ROPE rope = ROPE_INIT;
    rope_add(&rope, json);
    runtime_reply_rope(c, &rope);
}

void runtime_status_reply(struct call *c) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_str(&j, "status", "success");
    jw_object_end(&j);
    runtime_reply(c, &json);
}

/* ---- sessions ---- */

/* "100M" as megabytes, rounded up; 0: no such thing. */
static uint32_t read_size(const char *text) {
    static const char units[] = "KMG";
    size_t digits = strspn(text, "0123456789");
    const struct num_rule rule = {"size", 1, UINT64_MAX >> 32};
    char number[24];
    uint64_t n;
    struct err e;
    snprintf(number, sizeof number, "%.*s", digits < 22 ? (int)digits : 22, text);
    if (num_u64(number, &rule, &n, &e) < 0)
        return 0;
    const char *unit = text + digits;
    if (*unit) {
        char upper = (char)(*unit & ~0x20);
        const char *at = unit[1] == '\0' ? strchr(units, upper) : NULL;
        if (!at || upper == '\0')
            return 0;
        n <<= 10u * (unsigned)(at - units + 1);
    }
    uint64_t mb = (n + (1u << 20) - 1) >> 20;
    return mb > UINT32_MAX ? UINT32_MAX : (uint32_t)mb;
}

uint32_t runtime_cpus(const struct config *cfg) {
    uint32_t own = cfg->runtime.cpus_percent, most = cfg->maxima.cpus_percent;
    return own < most ? own : most;
}

bool runtime_allows_network(const struct config *cfg) {
    const char *word = cfg->runtime.allow_network;
    return strcmp(word, "on") == 0 || strcmp(word, "true") == 0 || strcmp(word, "1") == 0 ||
           strcmp(word, "yes") == 0;
}

static int fill(struct call *c, struct live_request *q, uint32_t disk_mb) {
    const struct config *cfg = c->api->config;
    q->name = xstrdup(c->params[0]);
    q->profile = xstrdup(cfg->profiles[0].name); /* bash needs no preloads */
    q->ttl_s = q->idle_s = cfg->runtime.ttl_s;
    q->own_bounds = true;
    q->limits.disk_mb = disk_mb < cfg->maxima.disk_mb ? disk_mb : cfg->maxima.disk_mb;
    q->limits.pids = MAX_PIDS < cfg->maxima.pids ? MAX_PIDS : cfg->maxima.pids;
    q->limits.cpus_percent = runtime_cpus(cfg);
    return 0;
}

static int fill_usual(struct call *c, struct live_request *q, struct problem *p) {
    if (runtime_allows_network(c->api->config) && network_all(&c->who, &q->network, p) < 0)
        return -1;
    return fill(c, q, SIZE_MB);
}

static int fill_asked_network(struct call *c, struct live_request *q, struct problem *p) {
    const json_t *allow = json_object_get(c->body, "allow_network");
    bool usual = runtime_allows_network(c->api->config);
    if (json_object_get(c->body, "network"))
        return network_read(&c->who, c->body, &q->network, p);
    if (!field_bool(c->body, "allow_network", usual))
        return 0;
    if (network_all(&c->who, &q->network, p) < 0)
        return -1;
    if (!q->network && allow && !json_is_null(allow))
        return problem_set(p, "network_not_allowed", "allow_network: no network is granted");
    return 0;
}

static int fill_sized(struct call *c, struct live_request *q, struct problem *p) {
    const char *size = field_str(c->body, "size", NULL);
    uint32_t mb = size ? read_size(size) : SIZE_MB, most = c->api->config->maxima.disk_mb;
    if (mb > 0 && (mb <= most || !size))
        return fill_asked_network(c, q, p) < 0 ? -1 : fill(c, q, mb);
    *p = (struct problem){.status = 400,
                          .code = mb ? "limit_too_high" : "bad_value",
                          .remediation = "give a size as \"100M\""};
    if (mb)
        snprintf(p->text, sizeof p->text,
                 "size is \"%.40s\"; a session may have at most %uM (max_disk_mb)", size, most);
    else
        snprintf(p->text, sizeof p->text,
                 "size is \"%.40s\"; it must be a number of bytes, or end in K, M or G", size);
    return -1;
}

static bool id_is_good(struct call *c) {
    const char *id = c->params[0];
    if (json_is_utf8(id, strlen(id)) && strlen(id) <= ALIAS_MAX)
        return true;
    runtime_error(c, 400, "bad_value",
                  "the session's id must be UTF-8 of at most %d bytes; this one is not", ALIAS_MAX);
    return false;
}

void runtime_use(struct call *c, alias_fn *then) {
    if (runtime_enter(c) && id_is_good(c))
        alias_use(c, RUNTIME, c->params[0], fill_usual, then);
}

static void reply_session(struct call *c, struct live *l) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_str(&j, "session_id", alias_name(l, RUNTIME));
    jw_object_end(&j);
    runtime_reply(c, &json);
}

static void do_runtime_session_new(struct call *c) {
    if (!runtime_enter(c) || !id_is_good(c))
        return;
    if (alias_is_taken(c, RUNTIME, c->params[0]))
        runtime_error(c, 409, "session_exists", "Session '%s' already exists", c->params[0]);
    else
        alias_use(c, RUNTIME, c->params[0], fill_sized, reply_session);
}

static void end_it(struct call *c, struct live *l) {
    if (l)
        live_requests_end(c, l, runtime_status_reply);
    else
        runtime_status_reply(c);
}

static void do_runtime_session_delete(struct call *c) {
    if (runtime_enter(c))
        alias_when(c, RUNTIME, c->params[0], end_it);
}

static void do_runtime_healthy(struct call *c) {
    if (runtime_enter(c))
        runtime_status_reply(c);
}

/* ---- looked at ---- */

static void put_status(struct call *c, struct live *l, const struct rope *items) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_str(&j, "id", c->params[0]);
    jw_key_bool(&j, "exists", l);
    if (l)
        jw_key_real(&j, "created_at", live_created(l));
    else
        jw_key_null(&j, "created_at");
    jw_key_str(&j, "mount_point", l ? PLACE : NULL);
    jw_key_bool(&j, "is_mounted", l);
    runtime_reply_files(c, &j, items);
}

static void runtime_look(struct call *c, struct live *l) {
    static const struct rope none = ROPE_INIT;
    if (l)
        runtime_list(
            c, l, &(struct runtime_listing){.path = "", .for_status = true, .reply = put_status});
    else
        put_status(c, NULL, &none);
}

static void do_runtime_status(struct call *c) {
    if (runtime_enter(c))
        alias_when(c, RUNTIME, c->params[0], runtime_look);
}

static void do_runtime_workspaces(struct call *c) {
    struct engine *g = c->api->o.engine;
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    if (!runtime_enter(c))
        return;
    jw_object(&j);
    jw_key(&j, "workspaces");
    jw_object(&j);
    for (struct live *l = live_next(g, c->who.tenant, NULL); l;
         l = live_next(g, c->who.tenant, l)) {
        const char *name = alias_name(l, RUNTIME);
        if (!name)
            continue;
        jw_key(&j, name);
        jw_object(&j);
        jw_key_str(&j, "mount_point", PLACE);
        jw_key_real(&j, "created_at", live_created(l));
        jw_object_end(&j);
    }
    jw_object_end(&j);
    jw_object_end(&j);
    runtime_reply(c, &json);
}

/* ---- all of them ended ---- */

struct cleanup {
    struct call *call;        /* NULL: the client has left */
    unsigned total, ended;    /* sessions of the tenant */
    unsigned pending;         /* sessions that end; one more while they are looked for */
    struct buf skipped_names; /* a JSON array */
    struct jw skipped;        /* writes into it */
};

static void leave_cleanup(void *state) {
    struct cleanup *u = state;
    u->call = NULL;
}

static void reply_cleanup(struct cleanup *u) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_array_end(&u->skipped);
    jw_object(&j);
    jw_key_uint(&j, "total", u->total);
    jw_key_uint(&j, "success", u->ended);
    jw_key(&j, "failed");
    jw_array(&j);
    jw_array_end(&j);
    jw_key(&j, "skipped");
    jw_raw(&j, u->skipped_names.data, u->skipped_names.len);
    jw_object_end(&j);
    u->call->state = NULL;
    u->call->state_done = NULL;
    runtime_reply(u->call, &json);
}

static void one_less(struct cleanup *u) {
    if (--u->pending > 0)
        return;
    if (u->call)
        reply_cleanup(u);
    buf_done(&u->skipped_names);
    free(u);
}

static void on_ended(void *arg) {
    struct cleanup *u = arg;
    u->ended++;
    one_less(u);
}

static void clean_one(struct cleanup *u, struct live *l, bool force) {
    u->total++;
    if (live_is_held(l) && !force) {
        jw_str(&u->skipped, alias_name(l, RUNTIME));
        return;
    }
    u->pending++;
    live_end(l, "all sessions were cleaned up", on_ended, u);
}

static void do_runtime_cleanup(struct call *c) {
    struct engine *g = c->api->o.engine;
    bool force = field_bool(c->body, "force", false);
    if (!runtime_enter(c))
        return;
    struct cleanup *u = xcalloc(1, sizeof *u);
    u->call = c;
    u->pending = 1;
    u->skipped_names = (struct buf)BUF_INIT;
    u->skipped = (struct jw)JW_INIT(&u->skipped_names);
    c->state = u;
    c->state_done = leave_cleanup;
    jw_array(&u->skipped);
    for (struct live *next, *l = live_next(g, c->who.tenant, NULL); l; l = next) {
        next = live_next(g, c->who.tenant, l);
        if (alias_name(l, RUNTIME))
            clean_one(u, l, force);
    }
    one_less(u);
}

static const struct field status_fields[] = {HAS("status", FIELD_STRING, WORDS("success"))};
RUNTIME_REPLY(status_reply, "RuntimeStatus", status_fields);
static const struct field made_fields[] = {HAS("session_id", FIELD_STRING)};
RUNTIME_REPLY(made_reply, "RuntimeSessionMade", made_fields);
static const struct field item_fields[] = {
    HAS("filename", FIELD_STRING),
    HAS("size", FIELD_INT),
    HAS("type", FIELD_STRING),
    HAS("modified_at", FIELD_REAL),
};
static const struct schema item_schema = {SCHEMA("RuntimeStatusFile", item_fields)};
static const struct field look_fields[] = {
    HAS("id", FIELD_STRING),
    HAS("exists", FIELD_BOOL),
    HAS_OR_NULL("created_at", FIELD_REAL, .help = "unix time"),
    HAS_OR_NULL("mount_point", FIELD_STRING),
    HAS("is_mounted", FIELD_BOOL),
    HAS("files", LIST_OF(item_schema)),
};
RUNTIME_REPLY(look_reply, "RuntimeSessionStatus", look_fields);
static const struct field workspace_fields[] = {
    HAS("mount_point", FIELD_STRING),
    HAS("created_at", FIELD_REAL, .help = "unix time"),
};
static const struct schema workspace_schema = {SCHEMA("RuntimeWorkspace", workspace_fields)};
static const struct field workspaces_fields[] = {
    HAS("workspaces", FIELD_MAP, .of = &workspace_schema, .help = "by id"),
};
RUNTIME_REPLY(workspaces_reply, "RuntimeWorkspaces", workspaces_fields);
static const struct field cleaned_fields[] = {
    HAS("total", FIELD_INT),
    HAS("success", FIELD_INT),
    HAS("failed", FIELD_LIST),
    HAS("skipped", FIELD_LIST),
};
RUNTIME_REPLY(cleaned_reply, "RuntimeCleaned", cleaned_fields);

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"GET", "/workspace/se/healthy", "Sandbox Runtime: whether it is there", "sandbox-runtime", NULL,
      NULL, 200, "status", JSON_TYPE, .gives = &status_reply, .errors = "400:bad_value"}, do_runtime_healthy, .is_open = true, .is_free = true},
    {{"POST", "/workspace/se/session/{session_id}", "Make a session", "sandbox-runtime",
      &runtime_session_schema, NULL, 200, "its id", JSON_TYPE, .gives = &made_reply, .replays = true,
      .errors = ERRORS_OF_SESSION "session_exists"}, do_runtime_session_new,
     .body_max = MB},
    {{"DELETE", "/workspace/se/session/{session_id}", "End a session", "sandbox-runtime", NULL, NULL,
      200, "status; also when there was none", JSON_TYPE, .gives = &status_reply,
      .errors = ERRORS_OF_SESSION}, do_runtime_session_delete},
    {{"GET", "/workspace/se/status/{session_id}", "Look at a session", "sandbox-runtime", NULL, NULL,
      200, "whether it exists, and its files", JSON_TYPE, .gives = &look_reply,
      .errors = ERRORS_OF_SESSION_FILE "list_too_long"}, do_runtime_status},
    {{"GET", "/workspace/se/workspaces", "List sessions", "sandbox-runtime", NULL, NULL, 200,
      "the sessions", JSON_TYPE, .gives = &workspaces_reply, .errors = "400:bad_value"}, do_runtime_workspaces},
    {{"POST", "/workspace/se/cleanup-all", "End all sessions", "sandbox-runtime",
      &runtime_cleanup_schema, NULL, 200, "how many", JSON_TYPE, .gives = &cleaned_reply,
      .errors = "400:bad_value"}, do_runtime_cleanup, .body_max = MB},
    {{.method = "GET", .path = "/api.json"}, spec_give_all, .is_open = true, .is_free = true},
};
/* clang-format on */
static const struct route_table table = ROUTE_TABLE(routes);

static void *runtime_start(struct api *a) {
    (void)a;
    return xcalloc(1, sizeof(struct runtime));
}

/* The routes of read.c come before those of files.c, or a preview would be taken for the list of a
 * directory of that name. */
const struct dialect runtime_dialect = {
    .name = RUNTIME,
    .help = "Sandbox Runtime's API",
    .refusal = &runtime_error_schema,
    .also_status = 500,
    .tables =
        (const struct route_table *const[]){&table, &runtime_read_routes, &runtime_files_routes,
                                            &runtime_run_routes, &runtime_handler_routes,
                                            &runtime_efast_routes, NULL},
    .tell = runtime_tell,
    .start = runtime_start,
};
