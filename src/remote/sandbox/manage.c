/* `cloche sandbox create`, `list` and `show`. */

#include "remote/sandbox/manage.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/url.h"
#include "cli/input.h"
#include "cli/report.h"
#include "remote/net/limits_json.h"
#include "remote/net/pages.h"
#include "remote/people.h"
#include "remote/sandbox/sandbox_cmd.h"
#include "remote/table.h"
#include "remote/value.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define INLINE_MAX (16u << 20) /* of --file together; more is for `put` */
#define PAGE       "100"

/* ---- which ---- */

typedef bool (*visit_fn)(void *arg, json_t *sandbox);

/* All sandboxes, page by page; `query` begins with & or is empty. */
static int visit(struct sandbox_cmd *b, const char *query, visit_fn fn, void *arg, struct err *e) {
    AUTO_BUF path = BUF_INIT;
    AUTO_PAGES pages = PAGES_INIT;
    for (int more = 1; more > 0;) {
        json_auto_t *page = NULL;
        json_t *one;
        size_t i;
        buf_clear(&path);
        buf_addf(&path, "/v1/sandboxes?limit=" PAGE "%s", query);
        pages_add(&pages, &path);
        if (sandbox_cmd_ask(b, "GET", path.data, NULL, &page, e) < 0)
            return -1;
        json_array_foreach(json_object_get(page, "sandboxes"), i, one) {
            if (!fn(arg, one))
                return 0;
        }
        more = pages_next(&pages, page, "sandboxes", e);
        if (more < 0)
            return -1;
    }
    return 0;
}

static bool is_whole_id(const char *word) {
    return strncmp(word, "sbx_", 4) == 0 && strlen(word) == 36 &&
           strspn(word + 4, "0123456789abcdef") == 32;
}

struct search {
    const char *word;
    char id[64];
    unsigned names, prefixes;
};

/* A name goes before the beginning of an id. */
static bool look_for_word(void *arg, json_t *sandbox) {
    struct search *s = arg;
    const char *id = value_text(sandbox, "id");
    bool is_named = strcmp(value_text(sandbox, "name"), s->word) == 0;
    bool begins = strncmp(id, s->word, strlen(s->word)) == 0;
    if (is_named ? !s->names : begins && !s->prefixes && !s->names)
        snprintf(s->id, sizeof s->id, "%.60s", id);
    s->names += is_named;
    s->prefixes += begins;
    return true;
}

int sandbox_find_word(struct sandbox_cmd *b, const char *word, struct buf *ret_path,
                      struct err *e) {
    struct search s = {.word = word};
    char quoted[80];
    if (is_whole_id(word)) {
        buf_addf(ret_path, "/v1/sandboxes/%s", word);
        return 0;
    }
    log_quote(word, quoted, sizeof quoted);
    if (*word && visit(b, "", look_for_word, &s, e) < 0)
        return -1;
    unsigned n = s.names ? s.names : s.prefixes;
    if (n == 0)
        return err_user(e, "no_such_sandbox", "there is no sandbox with the id or name %s", quoted);
    if (n > 1)
        return err_user(e, "ambiguous_id", "%u sandboxes have %s %s", n,
                        s.names ? "the name" : "an id that begins with", quoted);
    buf_adds(ret_path, "/v1/sandboxes/");
    url_encode(ret_path, s.id, "");
    return 0;
}

int sandbox_find(struct sandbox_cmd *b, struct buf *ret_path, struct err *e) {
    return sandbox_find_word(b, b->o.words.items[0], ret_path, e);
}

static void add_metadata_query(const struct sandbox_options *o, struct buf *to) {
    for (unsigned i = 0; i < o->metadata.n; i++) {
        const char *pair = o->metadata.items[i], *equals = strchr(pair, '=');
        AUTO_FREE char *key = xstrndup(pair, (size_t)(equals - pair));
        buf_adds(to, "&metadata.");
        url_encode(to, key ? key : "", "");
        buf_addc(to, '=');
        url_encode(to, equals + 1, "");
    }
}

static bool add_id(void *arg, json_t *sandbox) {
    json_array_append(arg, json_object_get(sandbox, "id"));
    return true;
}

int sandbox_find_all(struct sandbox_cmd *b, json_t **ret, struct err *e) {
    AUTO_BUF query = BUF_INIT;
    json_auto_t *ids = json_array();
    add_metadata_query(&b->o, &query);
    if (visit(b, query.data, add_id, ids, e) < 0)
        return -1;
    *ret = json_incref(ids);
    return 0;
}

/* ---- create ---- */

static int add_file(const char *spec, json_t *list, size_t *total, struct err *e) {
    struct input in = {.fd = -1};
    struct stat st;
    if (input_open(spec, &in, e) < 0)
        return -1;
    int rc = fstat(in.fd, &st) < 0 ? err_sys(e, "--file %s", spec) : 0;
    if (rc == 0 && (*total += (size_t)st.st_size) > INLINE_MAX)
        rc =
            err_user(e, "too_large",
                     "--file: more than %u bytes together; `cloche sandbox put` copies larger ones",
                     INLINE_MAX);
    json_t *file = json_object();
    json_array_append_new(list, file);
    if (rc == 0)
        rc = value_set_text(file, "path", "the name in --file", in.path, strlen(in.path), e);
    AUTO_BUF raw = BUF_INIT;
    while (rc == 0 && raw.len < (size_t)st.st_size) {
        size_t left = (size_t)st.st_size - raw.len;
        ssize_t n = pread(in.fd, buf_reserve(&raw, left), left, (off_t)raw.len);
        if (n < 0)
            rc = err_user(e, "not_readable", "--file %s: %s", spec, strerror(errno));
        if (n <= 0)
            break;
        buf_commit(&raw, (size_t)n);
    }
    AUTO_BUF text = BUF_INIT;
    base64_encode(&text, raw.data, raw.len);
    json_object_set_new(file, "content", json_stringn(text.data, text.len));
    json_object_set_new(file, "encoding", json_string("base64"));
    input_done(&in);
    return rc;
}

int sandbox_change_limits(struct sandbox_cmd *b, const char *path, struct err *e) {
    json_auto_t *answer = NULL;
    if (!limits_any(&b->o.limits, LIMIT_OF_WHOLE))
        return 0;
    json_auto_t *body = json_object();
    json_t *limits = json_object();
    json_object_set_new(body, "limits", limits);
    limits_json(&b->o.limits, LIMIT_OF_WHOLE, limits);
    return sandbox_cmd_ask(b, "PATCH", path, body, &answer, e);
}

static int add_members(const struct sandbox_options *o, json_t *body, struct err *e) {
    if (o->profile &&
        value_set_text(body, "profile", "--profile", o->profile, strlen(o->profile), e))
        return -1;
    if (o->name && value_set_text(body, "name", "--name", o->name, strlen(o->name), e) < 0)
        return -1;
    if (o->network &&
        value_set_text(body, "network", "--network", o->network, strlen(o->network), e) < 0)
        return -1;
    if (o->listen)
        json_object_set_new(body, "listen", json_true());
    if (o->ttl_s)
        json_object_set_new(body, "ttl_seconds", json_integer(o->ttl_s));
    if (o->idle_s)
        json_object_set_new(body, "idle_seconds", json_integer(o->idle_s));
    json_t *limits = json_object();
    json_object_set_new(body, "limits", limits);
    limits_json(&o->limits, LIMIT_OF_WHOLE | LIMIT_OF_CELL, limits);
    json_t *metadata = json_object(), *env = json_object();
    json_object_set_new(body, "metadata", metadata);
    json_object_set_new(body, "env", env);
    return sandbox_cmd_add_pairs(&o->metadata, metadata, e) < 0
               ? -1
               : sandbox_cmd_add_pairs(&o->env, env, e);
}

int sandbox_make(struct sandbox_cmd *b, json_t **ret, struct err *e) {
    json_auto_t *body = json_object();
    json_t *files = json_array();
    size_t total = 0;
    json_object_set_new(body, "files", files);
    if (add_members(&b->o, body, e) < 0)
        return -1;
    for (unsigned i = 0; i < b->o.files.n; i++)
        if (add_file(b->o.files.items[i], files, &total, e) < 0)
            return -1;
    return sandbox_cmd_ask(b, "POST", "/v1/sandboxes", body, ret, e);
}

int sandbox_create(struct sandbox_cmd *b, struct err *e) {
    json_auto_t *made = NULL;
    if (sandbox_make(b, &made, e) < 0)
        return -1;
    if (b->o.json)
        table_json(made);
    else
        table_line(value_text(made, "id"));
    return 0;
}

/* ---- list and show ---- */

static void add_metadata(struct buf *to, const json_t *sandbox) {
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(sandbox, "metadata"), key, value) {
        buf_addf(to, "%s%s=", to->len ? " " : "", key);
        buf_adds(to, json_is_string(value) ? json_string_value(value) : "?");
    }
}

void sandbox_add_moment(struct buf *to, const json_t *at) {
    if (!json_is_number(at)) {
        buf_addc(to, '-');
        return;
    }
    double left = json_number_value(at) - (double)clock_ns(CLOCK_REALTIME) / 1e9;
    if (left >= 1)
        buf_adds(to, "in ");
    people_time(to, left < 0 ? -left : left);
    if (left < 1)
        buf_adds(to, " ago");
}

/* Whichever of the two ends comes first. */
static const json_t *first_end(const json_t *sandbox) {
    const json_t *ttl = json_object_get(sandbox, "expires");
    const json_t *idle = json_object_get(sandbox, "idle_expires");
    if (!json_is_number(idle))
        return ttl;
    return json_is_number(ttl) && json_number_value(ttl) < json_number_value(idle) ? ttl : idle;
}

struct listing {
    struct table table;
    json_t *all; /* owned, or NULL */
};

static bool add_row(void *arg, json_t *sandbox) {
    struct listing *l = arg;
    if (l->all) {
        json_array_append(l->all, sandbox);
        return true;
    }
    AUTO_BUF created = BUF_INIT;
    AUTO_BUF end = BUF_INIT;
    AUTO_BUF metadata = BUF_INIT;
    sandbox_add_moment(&created, json_object_get(sandbox, "created"));
    sandbox_add_moment(&end, first_end(sandbox));
    add_metadata(&metadata, sandbox);
    const char *row[] = {value_text(sandbox, "id"),
                         value_text(sandbox, "name"),
                         value_text(sandbox, "state"),
                         value_text(sandbox, "profile"),
                         created.data,
                         end.data,
                         metadata.data};
    table_add(&l->table, row);
    return true;
}

int sandbox_list(struct sandbox_cmd *b, struct err *e) {
    static const char *const head[] = {"id",      "name", "state",   "profile",
                                       "created", "ends", "metadata"};
    struct listing l = {.table = {.columns = 7}, .all = b->o.json ? json_array() : NULL};
    AUTO_BUF query = BUF_INIT;
    add_metadata_query(&b->o, &query);
    table_add(&l.table, head);
    int rc = visit(b, query.data, add_row, &l, e);
    if (rc == 0)
        table_print_or(&l.table, "sandboxes", l.all);
    json_decref(l.all);
    table_done(&l.table);
    return rc;
}

static void add_fact(struct table *t, const char *name, const char *value) {
    table_add(t, (const char *[]){name, value});
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

/* A number by the unit that its name ends with: {"cpu_ms": 1124.5} is "cpu 1.1 s". */
static void add_number(struct buf *to, const char *key, const json_t *value) {
    static const char *const units[] = {"_ms", "_seconds", "_bytes", "_mb"};
    size_t u = 0;
    while (u < 4 && !ends_with(key, units[u]))
        u++;
    size_t len = strlen(key) - (u < 4 ? strlen(units[u]) : 0);
    for (size_t i = 0; i < len; i++)
        buf_addc(to, key[i] == '_' ? ' ' : key[i]);
    double v = json_number_value(value);
    buf_addc(to, ' ');
    if (!json_is_number(value))
        buf_adds(to, "unlimited");
    else if (u == 0)
        people_time(to, v / 1e3);
    else if (u == 1)
        people_time(to, v);
    else if (u == 2)
        people_bytes(to, v);
    else
        buf_addf(to, u == 3 ? "%.10g MB" : "%.10g", v);
}

static void add_members_fact(struct table *t, const json_t *sandbox, const char *name) {
    AUTO_BUF line = BUF_INIT;
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(sandbox, name), key, value) {
        buf_adds(&line, line.len ? ", " : "");
        add_number(&line, key, value);
    }
    add_fact(t, name, line.data);
}

static void add_kernels(struct table *t, const json_t *sandbox) {
    const json_t *k;
    size_t i;
    json_array_foreach(json_object_get(sandbox, "kernels"), i, k) {
        AUTO_BUF line = BUF_INIT;
        json_int_t n = json_integer_value(json_object_get(k, "execution_count"));
        buf_addf(&line, "%s %s, %" JSON_INTEGER_FORMAT " execution%s", value_text(k, "id"),
                 value_text(k, "state"), n, n == 1 ? "" : "s");
        json_int_t restarts = json_integer_value(json_object_get(k, "restarts"));
        if (restarts)
            buf_addf(&line, ", restarted %" JSON_INTEGER_FORMAT " time%s", restarts,
                     restarts == 1 ? "" : "s");
        add_fact(t, "kernel", line.data);
    }
}

static void add_port(struct table *t, const json_t *port) {
    char text[24];
    if (!json_is_integer(port))
        return;
    snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(port));
    add_fact(t, "port", text);
}

static void print_facts(const json_t *s) {
    static const char *const texts[] = {"id", "name", "state", "profile"};
    struct table t = {.columns = 2};
    AUTO_BUF created = BUF_INIT;
    AUTO_BUF expires = BUF_INIT;
    AUTO_BUF idle = BUF_INIT;
    AUTO_BUF metadata = BUF_INIT;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        add_fact(&t, texts[i], value_text(s, texts[i]));
    const json_t *policy = json_object_get(s, "network");
    AUTO_FREE char *network = json_is_object(policy) ? json_dumps(policy, JSON_COMPACT) : NULL;
    add_fact(&t, "network", network ? network : value_text(s, "network"));
    add_port(&t, json_object_get(s, "port"));
    sandbox_add_moment(&created, json_object_get(s, "created"));
    sandbox_add_moment(&expires, json_object_get(s, "expires"));
    sandbox_add_moment(&idle, json_object_get(s, "idle_expires"));
    add_metadata(&metadata, s);
    add_fact(&t, "created", created.data);
    add_fact(&t, "ends", expires.data);
    add_fact(&t, "ends if idle", idle.data);
    add_fact(&t, "metadata", metadata.data);
    add_kernels(&t, s);
    add_members_fact(&t, s, "limits");
    add_members_fact(&t, s, "usage");
    table_print(&t);
    table_done(&t);
}

int sandbox_show(struct sandbox_cmd *b, struct err *e) {
    AUTO_BUF path = BUF_INIT;
    json_auto_t *sandbox = NULL;
    if (sandbox_find(b, &path, e) < 0 ||
        sandbox_cmd_ask(b, "GET", path.data, NULL, &sandbox, e) < 0)
        return -1;
    if (b->o.json)
        table_json(sandbox);
    else
        print_facts(sandbox);
    return 0;
}
