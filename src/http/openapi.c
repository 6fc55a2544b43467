/* See openapi.h. */

#include "http/openapi.h"

#include "http/fields_read.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The schemas that the endpoints use, each once, in the order in which they are met. */
struct schemas {
    const struct schema **all; /* owned; what it points to is borrowed */
    size_t n;
};

static void schemas_add(struct schemas *list, const struct schema *s) {
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->all[i]->name, s->name) == 0)
            return;
    list->all = xrealloc(list->all, (list->n + 1) * sizeof(*list->all));
    list->all[list->n++] = s;
}

/* The list grows while it is walked, so tables that refer to each other are no trouble. */
static void schemas_collect(struct schemas *list, const struct api_doc *docs, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (docs[i].body)
            schemas_add(list, docs[i].body);
    for (size_t i = 0; i < list->n; i++)
        for (unsigned k = 0; k < list->all[i]->n; k++)
            if (list->all[i]->fields[k].of)
                schemas_add(list, list->all[i]->fields[k].of);
}

static void write_ref(struct jw *j, const char *name) {
    AUTO_BUF path = BUF_INIT;
    buf_addf(&path, "#/components/schemas/%s", name);
    jw_key_str(j, "$ref", path.data);
}

static void write_bounds(struct jw *j, const struct field *f, const char *min, const char *max) {
    if (f->flags & FIELD_MIN)
        jw_key_int(j, min, f->min);
    if (f->flags & FIELD_MAX)
        jw_key_int(j, max, f->max);
}

/* The inside of the schema of a string. */
static void write_string(struct jw *j, const struct field *f) {
    if (f->flags & FIELD_OR_INT) {
        static const char either[] = "[\"string\",\"integer\"]";
        jw_key(j, "type");
        jw_raw(j, either, strlen(either));
    } else {
        jw_key_str(j, "type", "string");
    }
    if (f->flags & FIELD_FILE)
        jw_key_str(j, "format", "binary");
    if (!f->words)
        return;
    jw_key(j, "enum");
    jw_array(j);
    for (size_t i = 0; f->words[i]; i++)
        jw_str(j, f->words[i]);
    jw_array_end(j);
}

static void write_inner(struct jw *j, const char *key, const struct field *f) {
    jw_key(j, key);
    jw_object(j);
    if (f->of)
        write_ref(j, f->of->name);
    else
        write_string(j, f);
    jw_object_end(j);
}

/* The inside of the schema of a field's value, null apart. */
static void write_type(struct jw *j, const struct field *f) {
    switch (f->type) {
    case FIELD_STRING:
        write_string(j, f);
        break;
    case FIELD_INT:
    case FIELD_REAL:
        jw_key_str(j, "type", f->type == FIELD_INT ? "integer" : "number");
        write_bounds(j, f, "minimum", "maximum");
        break;
    case FIELD_BOOL:
        jw_key_str(j, "type", "boolean");
        break;
    case FIELD_LIST:
        jw_key_str(j, "type", "array");
        write_inner(j, "items", f);
        write_bounds(j, f, "minItems", "maxItems");
        break;
    case FIELD_OBJECT:
        if (f->of)
            write_ref(j, f->of->name);
        else
            jw_key_str(j, "type", "object");
        break;
    case FIELD_MAP:
        jw_key_str(j, "type", "object");
        write_inner(j, "additionalProperties", f);
        write_bounds(j, f, "minProperties", "maxProperties");
        break;
    case FIELD_ANY: {
        static const char any[] = "[\"string\",\"array\",\"object\",\"null\"]";
        jw_key(j, "type");
        jw_raw(j, any, strlen(any));
        break;
    }
    }
}

static void write_default(struct jw *j, const struct field *f) {
    if (!f->fallback)
        return;
    jw_key(j, "default");
    jw_raw(j, f->fallback, strlen(f->fallback));
}

static void write_field(struct jw *j, const struct field *f) {
    jw_key(j, f->name);
    jw_object(j);
    if (f->flags & FIELD_NULLABLE) {
        jw_key(j, "anyOf");
        jw_array(j);
        jw_object(j);
        write_type(j, f);
        jw_object_end(j);
        jw_object(j);
        jw_key_str(j, "type", "null");
        jw_object_end(j);
        jw_array_end(j);
    } else {
        write_type(j, f);
    }
    if (f->help)
        jw_key_str(j, "description", f->help);
    write_default(j, f);
    jw_object_end(j);
}

static void write_required(struct jw *j, const struct schema *s) {
    bool any = false;
    for (unsigned i = 0; i < s->n; i++) {
        if (!(s->fields[i].flags & FIELD_REQUIRED) || s->fields[i].unless)
            continue;
        if (!any) {
            jw_key(j, "required");
            jw_array(j);
        }
        any = true;
        jw_str(j, s->fields[i].name);
    }
    if (any)
        jw_array_end(j);
}

static void write_schema(struct jw *j, const struct schema *s) {
    jw_key(j, s->name);
    jw_object(j);
    jw_key_str(j, "title", s->name);
    jw_key_str(j, "type", "object");
    jw_key(j, "properties");
    jw_object(j);
    for (unsigned i = 0; i < s->n; i++)
        write_field(j, &s->fields[i]);
    jw_object_end(j);
    write_required(j, s);
    if (!s->open)
        jw_key_bool(j, "additionalProperties", false);
    jw_object_end(j);
}

static void write_json(struct jw *j, const char *key, const char *json) {
    jw_key(j, key);
    jw_raw(j, json, strlen(json));
}

static void write_components(struct jw *j, const struct api_doc *docs, size_t n) {
    struct schemas list = {0};
    schemas_collect(&list, docs, n);
    jw_key(j, "components");
    jw_object(j);
    jw_key(j, "schemas");
    jw_object(j);
    for (size_t i = 0; i < list.n; i++)
        write_schema(j, list.all[i]);
    if (list.n > 0) {
        write_json(j, "HTTPValidationError",
                   "{\"title\":\"HTTPValidationError\",\"type\":\"object\",\"properties\":{"
                   "\"detail\":{\"title\":\"Detail\",\"type\":\"array\","
                   "\"items\":{\"$ref\":\"#/components/schemas/ValidationError\"}}}}");
        write_json(j, "ValidationError",
                   "{\"title\":\"ValidationError\",\"type\":\"object\",\"properties\":{"
                   "\"loc\":{\"title\":\"Location\",\"type\":\"array\","
                   "\"items\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}},"
                   "\"msg\":{\"title\":\"Message\",\"type\":\"string\"},"
                   "\"type\":{\"title\":\"Error Type\",\"type\":\"string\"},"
                   "\"input\":{\"title\":\"Input\"},"
                   "\"ctx\":{\"title\":\"Context\",\"type\":\"object\"}},"
                   "\"required\":[\"loc\",\"msg\",\"type\"]}");
    }
    jw_object_end(j);
    write_json(j, "securitySchemes",
               "{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"},"
               "\"key\":{\"type\":\"apiKey\",\"in\":\"header\",\"name\":\"X-API-Key\"}}");
    jw_object_end(j);
    free(list.all);
}

static void write_path_parameter(struct jw *j, const char *name, size_t len) {
    jw_object(j);
    jw_key(j, "name");
    jw_strn(j, name, len);
    jw_key_str(j, "in", "path");
    jw_key_bool(j, "required", true);
    write_json(j, "schema", "{\"type\":\"string\"}");
    jw_object_end(j);
}

static void write_query_parameter(struct jw *j, const struct field *f) {
    jw_object(j);
    jw_key_str(j, "name", f->name);
    jw_key_str(j, "in", "query");
    if (f->help)
        jw_key_str(j, "description", f->help);
    jw_key(j, "schema");
    jw_object(j);
    write_type(j, f);
    write_default(j, f);
    jw_object_end(j);
    jw_object_end(j);
}

static void write_parameters(struct jw *j, const struct api_doc *d) {
    if (!strchr(d->path, '{') && !d->query)
        return;
    jw_key(j, "parameters");
    jw_array(j);
    for (const char *at = strchr(d->path, '{'); at; at = strchr(at, '{')) {
        at++;
        write_path_parameter(j, at, strcspn(at, ".}"));
    }
    for (unsigned i = 0; d->query && i < d->query->n; i++)
        write_query_parameter(j, &d->query->fields[i]);
    jw_array_end(j);
}

/* {"TYPE":{"schema":...}}; without a name the schema is `json`. */
static void write_content(struct jw *j, const char *type, const char *name, const char *json) {
    jw_key(j, "content");
    jw_object(j);
    jw_key(j, type);
    jw_object(j);
    jw_key(j, "schema");
    if (name) {
        jw_object(j);
        write_ref(j, name);
        jw_object_end(j);
    } else {
        jw_raw(j, json, strlen(json));
    }
    jw_object_end(j);
    jw_object_end(j);
}

static void write_request(struct jw *j, const struct api_doc *d) {
    if (!d->body && !d->body_type)
        return;
    jw_key(j, "requestBody");
    jw_object(j);
    write_content(j, d->body_type ? d->body_type : "application/json",
                  d->body ? d->body->name : NULL, "{\"type\":\"string\",\"format\":\"binary\"}");
    jw_key_bool(j, "required", !d->body || fields_want_body(d->body));
    jw_object_end(j);
}

static void write_reply(struct jw *j, int status, const struct api_doc *d) {
    AUTO_BUF key = BUF_INIT;
    buf_addf(&key, "%d", status);
    jw_key(j, key.data);
    jw_object(j);
    jw_key_str(j, "description", d->reply ? d->reply : "");
    if (d->reply_type)
        write_content(j, d->reply_type, NULL, "{}");
    jw_object_end(j);
}

static void write_responses(struct jw *j, const struct api_doc *d) {
    jw_key(j, "responses");
    jw_object(j);
    write_reply(j, d->status, d);
    if (d->also)
        write_reply(j, d->also, d);
    if (d->body && d->status != 422) {
        jw_key(j, "422");
        jw_object(j);
        jw_key_str(j, "description", "Validation Error");
        write_content(j, "application/json", "HTTPValidationError", "{}");
        jw_object_end(j);
    }
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

static void write_operation(struct jw *j, const struct api_doc *d) {
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
    write_operation_id(j, d);
    write_parameters(j, d);
    write_request(j, d);
    write_responses(j, d);
    if (d->is_open)
        write_json(j, "security", "[]");
    jw_object_end(j);
}

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

static void write_paths(struct jw *j, const struct api_doc *docs, size_t n) {
    jw_key(j, "paths");
    jw_object(j);
    for (size_t i = 0; i < n; i++) {
        if (is_among(docs, i, &docs[i], true))
            continue;
        write_path(j, docs[i].path);
        jw_object(j);
        for (size_t k = i; k < n; k++)
            if (strcmp(docs[k].path, docs[i].path) == 0 && !is_among(docs, k, &docs[k], false))
                write_operation(j, &docs[k]);
        jw_object_end(j);
    }
    jw_object_end(j);
}

void openapi_write(const char *title, const char *version, const struct api_doc *docs, size_t n,
                   struct buf *to) {
    struct jw j = JW_INIT(to);
    jw_object(&j);
    jw_key_str(&j, "openapi", "3.1.0");
    jw_key(&j, "info");
    jw_object(&j);
    jw_key_str(&j, "title", title);
    jw_key_str(&j, "version", version);
    jw_object_end(&j);
    /* One of the two, or none where the server wants no keys. */
    write_json(&j, "security", "[{\"bearer\":[]},{\"key\":[]},{}]");
    write_paths(&j, docs, n);
    write_components(&j, docs, n);
    jw_object_end(&j);
}
