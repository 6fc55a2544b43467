/* ipybox's resource server: the files, directories and modules of the tenant's default sandbox,
 * which is the one that the tenant's notebooks share. It is made at the first use; a header names
 * another one, and at a sandbox's own port it is that one. Paths are relative to the workspace,
 * which is also /app inside. /mcp is not served.
 */

#include "api/core/doors.h"
#include "api/files/archive.h"
#include "api/files/download.h"
#include "api/files/file_type.h"
#include "api/files/paths.h"
#include "api/files/unpack.h"
#include "api/jobs/command_wait.h"
#include "api/jobs/network_change.h"
#include "api/jobs/shared_sandbox.h"
#include "base/fd.h"
#include "http/field_fault.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER     "X-Cloche-Sandbox"
#define ALLOWED    "X-Cloche-Allowed-Domains"
#define MODULES_PY "/run/cloche/cell/modules.py"

/* ---- which sandbox ---- */

static void with_domains(struct call *c, struct live *l);

static void use(struct call *c, alias_fn *then) {
    const char *other = http_header(c->req, HEADER);
    struct err e;
    if (http_header(c->req, ALLOWED))
        then = with_domains;
    if (!other) {
        shared_use(c, NULL, then);
        return;
    }
    struct live *l = live_find(c->api->o.engine, c->who.tenant, other, &e);
    if (l && !call_means(c, l))
        call_refuse(c, "no_such_sandbox", "this is the port of another sandbox");
    else if (l)
        then(c, l);
    else
        call_fail(c, &e);
}

/* ---- errors, in ipybox's words ---- */

static bool says(const struct problem *p, const char *words) {
    return strstr(problem_message(p), words) != NULL;
}

static int ipybox_tell(const struct call *c, const struct problem *p, struct buf *to) {
    struct problem q = *p;
    const char *message = problem_message(p);
    char text[ERR_TEXT_MAX + 32];
    bool is_directory = strncmp(c->route->doc.path, "/dir", 4) == 0;
    if (strcmp(p->code, "no_such_path") == 0) {
        q.detail = is_directory ? "Directory not found" : "File not found";
    } else if (strcmp(p->code, "bad_path") == 0) {
        bool escapes = says(p, "must be relative") || says(p, "must not contain '..'") ||
                       says(p, "cross-device");
        snprintf(text, sizeof text, "Invalid path: %s",
                 escapes ? "escapes root directory" : message);
        q.status = 400;
        q.detail = text;
    } else if (strcmp(p->code, "bad_archive") == 0) {
        snprintf(text, sizeof text, "Invalid %s: %s", *message == '"' ? "tar member" : "archive",
                 message);
        q.status = 400;
        q.detail = text;
    }
    problem_json(&q, to);
    return q.status;
}

/* ---- status ---- */

static void do_ipybox_status(struct call *c) {
    static const char ok[] = "{\"status\":\"ok\"}";
    http_reply(c->req, 200, "application/json", ok, sizeof ok - 1);
}

/* ---- files ---- */

static void say_uploaded(struct call *c, const char *what, const char *path) {
    AUTO_BUF json = BUF_INIT, text = BUF_INIT;
    struct jw j = JW_INIT(&json);
    buf_addf(&text, "%s uploaded to %s", what, path);
    jw_object(&j);
    jw_key_str(&j, "message", text.data);
    jw_object_end(&j);
    call_json(c, 200, &json);
}

static void file_uploaded(struct call *c, const struct files_made *m) {
    say_uploaded(c, "File", m->path);
}

static void put_file(struct call *c, struct live *l) {
    files_put(c, live_id(l), c->params[0], NULL, file_uploaded);
}

static void do_ipybox_upload(struct call *c) {
    http_hold(c->req);
    use(c, put_file);
}

static void get_file(struct call *c, struct live *l) {
    files_get(c, live_id(l), c->params[0], file_type(c->params[0]));
}

static void do_ipybox_download(struct call *c) {
    use(c, get_file);
}

static void remove_file(struct call *c, struct live *l) {
    files_remove(c, live_id(l), c->params[0]);
}

static void do_ipybox_delete(struct call *c) {
    use(c, remove_file);
}

/* ---- directories ---- */

static void directory_uploaded(struct call *c, const struct files_made *m) {
    say_uploaded(c, "Directory", m->path);
}

static void unpack(struct call *c, struct live *l) {
    files_unpack(c, live_id(l), c->params[0], directory_uploaded);
}

static void do_ipybox_unpack(struct call *c) {
    http_hold(c->req);
    use(c, unpack);
}

static void pack(struct call *c, struct live *l) {
    static const struct archive_form form = {
        .type = "application/x-gzip", .whole = "app", .only_files = true, .only_directory = true};
    files_archive(c, live_id(l), c->params[0], &form);
}

static void do_ipybox_archive(struct call *c) {
    use(c, pack);
}

/* ---- modules ---- */

static void bad_answer(struct call *c, int status, const char *code, const char *what) {
    call_problem(c, &(struct problem){.status = status,
                                      .code = code,
                                      .message = what,
                                      .remediation = "see what the modules do when imported"});
}

static void ipybox_not_found(struct call *c, const char *name, const char *why) {
    char detail[ERR_TEXT_MAX];
    struct problem p = {.status = 404,
                        .code = "no_such_module",
                        .remediation = "upload it, or ask for another one",
                        .detail = detail};
    snprintf(detail, sizeof detail, "Module %.300s not found", name);
    snprintf(p.text, sizeof p.text, "%.180s cannot be imported: %.180s", name, why);
    call_problem(c, &p);
}

static char *copy_of(const json_t *text, const char *otherwise) {
    const char *it = json_string_value(text);
    return xstrndup(it ? it : otherwise, 300);
}

/* SECURITY: the answer is from a process that ran the modules it was asked about. Whatever it says
 * concerns only its owner. */
static void read_modules(const struct command_end *end, const char *word,
                         struct command_found *ret) {
    const struct buf *text = &end->text[0]->bytes;
    json_auto_t *said = NULL;
    json_t *source;
    const char *name;
    struct err e;
    (void)word;
    if (json_read(text->data, text->len, JSON_DEPTH_MAX, &said, &e) < 0) {
        ret->words[1] = xstrdup("a module ended the process that imported it");
        return;
    }
    json_t *missing = json_object_get(said, "missing"), *found = json_object_get(said, "found");
    if (json_is_string(missing)) {
        ret->words[0] = copy_of(missing, "");
        ret->words[1] = copy_of(json_object_get(said, "why"), "");
        return;
    }
    ret->is_good = json_is_object(found);
    json_object_foreach(found, name, source) ret->is_good &= json_is_string(source);
    struct jw j = JW_INIT(&ret->json);
    if (ret->is_good)
        jw_json(&j, found, "{}");
    else
        ret->words[1] = xstrdup("the sandbox gave no answer");
}

static void on_modules(struct call *c, const struct command_end *end, struct command_found *found) {
    AUTO_ROPE reply = ROPE_INIT;
    if (end->timed_out) {
        bad_answer(c, 504, "modules_timeout", "to import them took too long");
    } else if (end->truncated[0]) {
        bad_answer(c, 500, "modules_failed", "the sources are too long; ask for fewer modules");
    } else if (found->is_good) {
        rope_add(&reply, &found->json);
        http_reply_rope(c->req, 200, "application/json", &reply);
    } else if (found->words[0]) {
        ipybox_not_found(c, found->words[0], found->words[1]);
    } else {
        bad_answer(c, 500, "modules_failed", found->words[1]);
    }
}

static const struct config_profile *profile_of(const struct call *c, const struct live *l) {
    const struct config *g = c->api->config;
    for (unsigned i = 0; i < g->nprofiles; i++) {
        if (strcmp(g->profiles[i].name, live_profile(l)) == 0)
            return &g->profiles[i];
    }
    return &g->profiles[0];
}

/* The HTTP server bounds how many parameters there can be. */
static void put_question(struct jw *j, const struct call *c, const struct config_profile *p) {
    const char *name, *value;
    jw_object(j);
    jw_key(j, "names");
    jw_array(j);
    for (unsigned i = 0; http_query_at(c->req, i, &name, &value); i++) {
        if (strcmp(name, "q") == 0)
            jw_str(j, value ? value : "");
    }
    jw_array_end(j);
    jw_key(j, "sites");
    jw_array(j);
    for (unsigned i = 0; i < p->sites.n; i++)
        jw_str(j, p->sites.items[i]);
    jw_array_end(j);
    jw_object_end(j);
}

static void ask_modules(struct call *c, struct live *l) {
    const struct config_profile *p = profile_of(c, l);
    AUTO_BUF question = BUF_INIT;
    struct jw j = JW_INIT(&question);
    put_question(&j, c, p);
    struct command_request q = {.argv = xcalloc(3, sizeof *q.argv),
                                .shown = xstrdup("modules"),
                                .cwd = xstrdup("/workspace"),
                                .timeout_ms = live_limits(l)->timeout_ms,
                                .stdin_text = json_stringn(question.data, question.len)};
    q.argv[0] = xstrdup(p->python);
    q.argv[1] = xstrdup(MODULES_PY);
    command_wait(c, l, &q,
                 &(struct command_wait_options){.look = read_modules, .then = on_modules});
}

static void lacks_names(struct call *c) {
    call_fault(c, "query", "q",
               &(struct field_fault){"missing", "Field required", json_null(), NULL});
}

static void do_ipybox_modules(struct call *c) {
    if (call_query(c, "q"))
        use(c, ask_modules);
    else
        lacks_names(c);
}

/* ---- the network ---- */

/* Which function goes on with a request when its sandbox is there. */
static const struct {
    void (*fn)(struct call *c);
    alias_fn *then;
} uses[] = {
    {do_ipybox_upload, put_file}, {do_ipybox_download, get_file}, {do_ipybox_delete, remove_file},
    {do_ipybox_unpack, unpack},   {do_ipybox_archive, pack},      {do_ipybox_modules, ask_modules},
};

static void use_now(struct call *c, struct live *l) {
    size_t i = 0;
    while (uses[i].fn != c->route->fn)
        i++;
    uses[i].then(c, l);
}

/* From this request on; as with init_firewall, the last one counts. */
static void with_domains(struct call *c, struct live *l) {
    struct problem p;
    struct network_terms *t = network_unreachable_of(&c->who, http_header(c->req, ALLOWED), &p);
    if (!t)
        call_problem(c, &p);
    else if (strcmp(t->json.data, live_network(l)) == 0)
        use_now(c, l);
    else
        network_change(c, l, &t, use_now);
    network_terms_free(t);
}

static const struct field status_fields[] = {HAS("status", FIELD_STRING, WORDS("ok"))};
static const struct schema status_schema = {SCHEMA("IpyboxStatus", status_fields)};
static const struct field message_fields[] = {HAS("message", FIELD_STRING)};
static const struct schema message_schema = {SCHEMA("IpyboxMessage", message_fields)};
static const struct schema sources_schema = {
    "IpyboxModules", .value = &(struct field){.type = FIELD_MAP}, .help = "sources by name"};
static const struct field modules_fields[] = {
    {.name = "q", .type = FIELD_LIST, .flags = FIELD_REQUIRED, .help = "names of modules"},
};
static const struct schema modules_query = {"", modules_fields, 1, true};

/* The sandbox is made at the first use. */
#define ERRORS_OF_FILES                                                                            \
    ERRORS_OF_START ERRORS_OF_PATH "too_many_sandboxes 400:bad_path sandbox_paused "

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"GET", "/status", "ipybox: whether the server is there", "ipybox", NULL, NULL, 200, "ok",
      JSON_TYPE, .gives = &status_schema}, do_ipybox_status, .is_open = true, .is_free = true},
    {{.method = "GET", .path = "/status/"}, do_ipybox_status, .is_open = true, .is_free = true},
    {{"POST", "/files/{path...}", "ipybox: upload a file to the default sandbox, or to that of the "
      "header X-Cloche-Sandbox", "ipybox", NULL, "application/octet-stream", 200, "a message",
      JSON_TYPE, .gives = &message_schema, .errors = ERRORS_OF_FILES}, do_ipybox_upload},
    {{"GET", "/files/{path...}", "ipybox: download a file", "ipybox", NULL, NULL, 200, "its bytes",
      "*/*", .more = download_replies, .errors = ERRORS_OF_FILES ERRORS_OF_DOWNLOAD},
     do_ipybox_download},
    {{"DELETE", "/files/{path...}", "ipybox: delete a file", "ipybox", NULL, NULL, 204, "nothing",
      NULL, .errors = ERRORS_OF_FILES "not_empty"}, do_ipybox_delete},
    {{"POST", "/directories/{path...}", "ipybox: unpack a tar.gz into a directory", "ipybox", NULL,
      "application/x-gzip", 200, "a message", JSON_TYPE, .gives = &message_schema,
      .errors = ERRORS_OF_FILES "400:bad_archive not_empty too_many_archives 507:disk_full"}, do_ipybox_unpack},
    {{"GET", "/directories/{path...}", "ipybox: download a directory", "ipybox", NULL, NULL, 200,
      "a tar.gz of its files", "application/x-gzip",
      .errors = ERRORS_OF_FILES "too_many_archives"}, do_ipybox_archive},
    {{"GET", "/modules", "ipybox: sources of modules", "ipybox", NULL, NULL, 200,
      "names and sources", JSON_TYPE, &modules_query, .gives = &sources_schema,
      .errors = ERRORS_OF_START ERRORS_OF_WAIT
                "bad_fields too_many_sandboxes no_such_module modules_failed modules_timeout"}, do_ipybox_modules},
};
/* clang-format on */
static const struct route_table table = ROUTE_TABLE(routes);

const struct dialect ipybox_dialect = {
    .name = "ipybox",
    .help = "ipybox's resource server: files and modules of a tenant's default sandbox",
    .tables = (const struct route_table *const[]){&table, NULL},
    .tell = ipybox_tell,
    .at_doors = true,
};
