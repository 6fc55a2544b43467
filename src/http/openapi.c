/* See openapi.h. */

#include "http/openapi.h"

#include "base/fd.h"
#include "http/fields_read.h"
#include "http/openapi_refusals.h"
#include "http/openapi_schema.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What is known when the components are written. */
struct writing {
    struct jw j;
    const struct api_spec *spec; /* borrowed */
    struct schemas schemas;
    struct refusals refusals;
};

static void write_json(struct jw *j, const char *key, const char *json) {
    jw_key(j, key);
    jw_raw(j, json, strlen(json));
}

/* ---- an endpoint ---- */

/* `rest`: it is what is left of the path, slashes and all, which OpenAPI has no word for. */
static void write_path_parameter(struct jw *j, const char *name, size_t len, bool rest) {
    jw_object(j);
    jw_key(j, "name");
    jw_strn(j, name, len);
    jw_key_str(j, "in", "path");
    jw_key_bool(j, "required", true);
    if (rest) {
        jw_key_str(j, "description", "the rest of the path: it may have slashes, or be empty");
        jw_key_bool(j, "x-rest", true);
    }
    write_json(j, "schema", "{\"type\":\"string\"}");
    jw_object_end(j);
}

static void write_query_parameter(struct writing *w, const struct field *f) {
    struct jw *j = &w->j;
    jw_object(j);
    jw_key_str(j, "name", f->name);
    jw_key_str(j, "in", "query");
    if (f->help)
        jw_key_str(j, "description", f->help);
    jw_key(j, "schema");
    jw_object(j);
    schema_write_type(j, &w->schemas, f);
    schema_write_default(j, f);
    jw_object_end(j);
    jw_object_end(j);
}

static void write_replay_parameter(struct jw *j) {
    static const char json[] = "{\"name\":\"Idempotency-Key\",\"in\":\"header\",\"description\":"
                               "\"sent again with the same key, it is carried out once\","
                               "\"schema\":{\"type\":\"string\"}}";
    jw_raw(j, json, sizeof json - 1);
}

static void write_parameters(struct writing *w, const struct api_doc *d) {
    struct jw *j = &w->j;
    if (!strchr(d->path, '{') && !d->query && !d->replays)
        return;
    jw_key(j, "parameters");
    jw_array(j);
    for (const char *at = strchr(d->path, '{'); at; at = strchr(at, '{')) {
        at++;
        size_t len = strcspn(at, ".}");
        write_path_parameter(j, at, len, at[len] == '.');
    }
    for (unsigned i = 0; d->query && i < d->query->n; i++)
        write_query_parameter(w, &d->query->fields[i]);
    if (d->replays)
        write_replay_parameter(j);
    jw_array_end(j);
}

/* "TYPE":{"schema":...}; without a table it is text, or bytes. */
static void write_media(struct jw *j, const char *type, const struct schema *s) {
    jw_key(j, type);
    jw_object(j);
    jw_key(j, "schema");
    jw_object(j);
    if (s) {
        schema_write_ref(j, s);
    } else {
        jw_key_str(j, "type", "string");
        if (strncmp(type, "text/", 5) != 0)
            jw_key_str(j, "format", "binary");
    }
    jw_object_end(j);
    jw_object_end(j);
}

static void write_request(struct jw *j, const struct api_doc *d) {
    if (!d->body && !d->body_type)
        return;
    jw_key(j, "requestBody");
    jw_object(j);
    jw_key(j, "content");
    jw_object(j);
    write_media(j, d->body_type ? d->body_type : "application/json", d->body);
    jw_object_end(j);
    jw_key_bool(j, "required", !d->body || fields_want_body(d->body));
    jw_object_end(j);
}

static void write_content(struct jw *j, int status, const struct api_doc *d) {
    const struct api_reply *r = d->more;
    bool usual = status == d->status || status == d->also;
    jw_key(j, "content");
    jw_object(j);
    if (usual && d->reply_type)
        write_media(j, d->reply_type, d->gives);
    if (usual && d->events) {
        write_media(j, "text/event-stream", d->events);
        write_media(j, "application/x-ndjson", d->events);
    }
    for (; r && r->status; r++)
        if (r->status == status && r->type)
            write_media(j, r->type, r->gives);
    jw_object_end(j);
}

static bool has_content(int status, const struct api_doc *d) {
    const struct api_reply *r = d->more;
    bool has = (status == d->status || status == d->also) && (d->reply_type || d->events);
    for (; r && r->status; r++)
        has |= r->status == status && r->type;
    return has;
}

static void write_reply(struct jw *j, int status, const char *words, const struct api_doc *d) {
    AUTO_BUF key = BUF_INIT;
    buf_addf(&key, "%d", status);
    jw_key(j, key.data);
    jw_object(j);
    jw_key_str(j, "description", words ? words : "");
    if (has_content(status, d))
        write_content(j, status, d);
    jw_object_end(j);
}

static void write_responses(struct writing *w, const struct api_doc *d) {
    struct jw *j = &w->j;
    jw_key(j, "responses");
    jw_object(j);
    write_reply(j, d->status, d->reply, d);
    if (d->also)
        write_reply(j, d->also, d->reply, d);
    for (const struct api_reply *r = d->more; r && r->status; r++)
        if (r->status != d->status && r->status != d->also)
            write_reply(j, r->status, r->words, d);
    refusals_write(j, &w->refusals, d);
    if (d->passes)
        write_json(j, "default", "{\"description\":\"whatever else is answered there\"}");
    jw_object_end(j);
}

static void add_lower(struct buf *b, const char *text) {
    for (const char *p = text; *p; p++)
        buf_addc(b, (char)tolower((unsigned char)*p));
}

/* "post_v1_files__file_id_": what generators of clients make function names from. */
static void write_operation_id(struct jw *j, const struct api_doc *d) {
    AUTO_BUF id = BUF_INIT;
    add_lower(&id, d->method);
    for (const char *p = d->path; *p; p++)
        buf_addc(&id, isalnum((unsigned char)*p) ? *p : '_');
    jw_key_str(j, "operationId", id.data);
}

/* OpenAPI has no word for WebSockets: a description for people, and one for programs. */
static void write_messages(struct jw *j, const struct api_doc *d) {
    const struct schema *const both[] = {d->takes, d->sends};
    static const char *const who[] = {"client", "server"};
    AUTO_BUF text = BUF_INIT;
    if (!d->takes && !d->sends)
        return;
    buf_addf(&text, "A WebSocket. Messages of the client: `%s`; of the server: `%s`.",
             d->takes ? d->takes->name : "none", d->sends ? d->sends->name : "none");
    jw_key_str(j, "description", text.data);
    jw_key(j, "x-websocket");
    jw_object(j);
    for (size_t i = 0; i < 2; i++) {
        if (!both[i])
            continue;
        jw_key(j, who[i]);
        jw_object(j);
        schema_write_ref(j, both[i]);
        jw_object_end(j);
    }
    jw_object_end(j);
}

static void write_security(struct jw *j, const struct api_doc *d) {
    if (d->is_open)
        write_json(j, "security", "[]");
    else if (d->secret)
        write_json(j, "security", "[{\"bearer\":[]},{\"key\":[]},{\"token\":[]},{}]");
}

static void write_operation(struct writing *w, const struct api_doc *d) {
    struct jw *j = &w->j;
    AUTO_BUF method = BUF_INIT;
    add_lower(&method, d->method);
    jw_key(j, method.data);
    jw_object(j);
    if (d->tag) {
        jw_key(j, "tags");
        jw_array(j);
        jw_str(j, d->tag);
        jw_array_end(j);
    }
    if (d->summary)
        jw_key_str(j, "summary", d->summary);
    write_messages(j, d);
    write_operation_id(j, d);
    write_parameters(w, d);
    write_request(j, d);
    write_responses(w, d);
    write_security(j, d);
    jw_object_end(j);
}

/* ---- all of them ---- */

/* Whether one of the first n has the path of d, and its method unless any will do. */
static bool is_among(const struct api_doc *docs, size_t n, const struct api_doc *d, bool any) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(docs[i].path, d->path) == 0 &&
            (any || strcasecmp(docs[i].method, d->method) == 0))
            return true;
    return false;
}

/* The specification has no word for the rest of a path. */
static void write_path(struct jw *j, const char *path) {
    AUTO_BUF plain = BUF_INIT;
    const char *rest = strstr(path, "...}");
    buf_add(&plain, path, rest ? (size_t)(rest - path) : strlen(path));
    if (rest)
        buf_addc(&plain, '}');
    jw_key(j, plain.data);
}

static void write_paths(struct writing *w) {
    const struct api_doc *docs = w->spec->docs;
    struct jw *j = &w->j;
    jw_key(j, "paths");
    jw_object(j);
    for (size_t i = 0; i < w->spec->n; i++) {
        if (is_among(docs, i, &docs[i], true))
            continue;
        write_path(j, docs[i].path);
        jw_object(j);
        for (size_t k = i; k < w->spec->n; k++)
            if (strcmp(docs[k].path, docs[i].path) == 0 && !is_among(docs, k, &docs[k], false))
                write_operation(w, &docs[k]);
        jw_object_end(j);
    }
    jw_object_end(j);
}

static void collect(struct writing *w) {
    struct schemas *list = &w->schemas;
    for (size_t i = 0; i < w->spec->n; i++) {
        const struct api_doc *d = &w->spec->docs[i];
        const struct schema *const own[] = {d->body,  d->gives, d->events,
                                            d->takes, d->sends, d->nrefusals ? d->refusal : NULL};
        for (size_t k = 0; k < sizeof own / sizeof *own; k++)
            schemas_add(list, own[k]);
        for (const struct api_reply *r = d->more; r && r->status; r++)
            schemas_add(list, r->gives);
        schemas_add_fields(list, d->query);
    }
    schemas_complete(list);
}

static void write_schemes(struct writing *w) {
    const char *secret = NULL;
    struct jw *j = &w->j;
    for (size_t i = 0; i < w->spec->n && !secret; i++)
        secret = w->spec->docs[i].secret;
    jw_key(j, "securitySchemes");
    jw_object(j);
    write_json(j, "bearer", "{\"type\":\"http\",\"scheme\":\"bearer\"}");
    write_json(j, "key", "{\"type\":\"apiKey\",\"in\":\"header\",\"name\":\"X-API-Key\"}");
    if (secret) {
        jw_key(j, "token");
        jw_object(j);
        jw_key_str(j, "type", "apiKey");
        jw_key_str(j, "in", "query");
        jw_key_str(j, "name", secret);
        jw_object_end(j);
    }
    jw_object_end(j);
}

static void write_components(struct writing *w) {
    struct jw *j = &w->j;
    jw_key(j, "components");
    jw_object(j);
    jw_key(j, "schemas");
    jw_object(j);
    schemas_write(j, &w->schemas);
    jw_object_end(j);
    if (w->refusals.n)
        refusals_write_all(j, &w->refusals);
    write_schemes(w);
    jw_object_end(j);
}

static bool is_used(const struct api_spec *s, const char *tag) {
    for (size_t i = 0; i < s->n; i++)
        if (s->docs[i].tag && strcmp(s->docs[i].tag, tag) == 0)
            return true;
    return false;
}

static void write_tags(struct jw *j, const struct api_spec *s) {
    if (!s->tags)
        return;
    jw_key(j, "tags");
    jw_array(j);
    for (const struct api_tag *t = s->tags; t->name; t++) {
        if (!is_used(s, t->name))
            continue;
        jw_object(j);
        jw_key_str(j, "name", t->name);
        jw_key_str(j, "description", t->help);
        jw_object_end(j);
    }
    jw_array_end(j);
}

/* What a client may do about each error. */
static void write_errors(struct jw *j, const struct api_spec *s) {
    if (!s->ncodes)
        return;
    jw_key(j, "x-errors");
    jw_object(j);
    for (size_t i = 0; i < s->ncodes; i++) {
        const struct api_code *c = &s->codes[i];
        jw_key(j, c->code);
        jw_object(j);
        jw_key_int(j, "status", c->status);
        jw_key_str(j, "remediation", c->remediation);
        jw_key_bool(j, "retryable", c->retryable);
        jw_object_end(j);
    }
    jw_object_end(j);
}

static void write_head(struct jw *j, const struct api_spec *s) {
    jw_key_str(j, "openapi", "3.1.0");
    jw_key(j, "info");
    jw_object(j);
    jw_key_str(j, "title", s->title);
    jw_key_str(j, "version", s->version);
    write_json(j, "license", "{\"name\":\"Apache 2.0\",\"identifier\":\"Apache-2.0\"}");
    jw_object_end(j);
    write_json(j, "servers", "[{\"url\":\"/\"}]");
    /* One of the two, or none where the server wants no keys. */
    write_json(j, "security", "[{\"bearer\":[]},{\"key\":[]},{}]");
    write_tags(j, s);
}

void openapi_write(const struct api_spec *s, struct buf *to) {
    AUTO_FREE const char **words = xcalloc(s->ncodes + 1, sizeof *words);
    struct writing w = {.j = JW_INIT(to), .spec = s, .schemas = {.codes = words}};
    for (size_t i = 0; i < s->ncodes; i++)
        words[i] = s->codes[i].code;
    collect(&w);
    jw_object(&w.j);
    write_head(&w.j, s);
    write_paths(&w);
    write_components(&w);
    write_errors(&w.j, s);
    jw_object_end(&w.j);
    schemas_done(&w.schemas);
    refusals_done(&w.refusals);
}
