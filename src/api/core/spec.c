/* See spec.h. A route's row says which errors its handler has; the others follow from the row: a
 * route that takes a body refuses a bad one, one that wants a key refuses who has none. */

#include "api/core/spec.h"

#include "api/core/call.h"
#include "api/core/dialect.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/rope.h"

#include <stdlib.h>
#include <string.h>

/* SECURITY: the document takes long to write and whoever asks needs no key, so it is written
 * once. */
struct spec {
    struct spec *next;
    const struct dialect *only; /* or NULL: of all */
    struct blob *json;          /* owned */
};

/* ---- errors ---- */

static bool is_any(const struct route *r) {
    (void)r;
    return true;
}

static bool wants_key(const struct route *r) {
    return !r->is_open;
}

static bool is_counted(const struct route *r) {
    return !r->is_free;
}

static bool takes_body(const struct route *r) {
    return r->body_max > 0;
}

static bool is_read(const struct route *r) {
    return r->doc.body != NULL;
}

static bool has_values(const struct route *r) {
    return r->doc.body || r->doc.query;
}

static bool is_replayed(const struct route *r) {
    return r->doc.replays;
}

static bool is_websocket(const struct route *r) {
    return r->doc.status == 101;
}

static const struct {
    bool (*is_for)(const struct route *r);
    const char *codes;
} usual[] = {
    {is_any, "bad_request bad_origin bad_host internal too_many_connections no_descriptors"},
    {wants_key, "no_key bad_key too_many_at_once"},
    {is_counted, "too_many_at_once too_many_requests"},
    {takes_body, "bad_body body_too_large bodies_full"},
    {is_read, "bad_fields"},
    {has_values, "bad_value"},
    {is_replayed, "bad_idempotency_key idempotency_key_reused idempotency_keys_full "
                  "reply_not_kept client_gone"},
    {is_websocket, "bad_handshake no_websocket"},
};

/* At a sandbox's own port: the sandbox is another tenant's, or it has ended. */
#define AT_DOORS "no_such_sandbox sandbox_gone"

struct refusal_list {
    struct api_code *items; /* owned */
    size_t n;
};

static void add_one(struct refusal_list *l, const struct api_code *one) {
    for (size_t i = 0; i < l->n; i++)
        if (l->items[i].status == one->status && l->items[i].code == one->code)
            return;
    l->items = xrealloc(l->items, (l->n + 1) * sizeof *l->items);
    l->items[l->n++] = *one;
}

/* "disk_full", or "507:disk_full". */
static void add_code(struct refusal_list *l, const char *word, size_t len) {
    struct api_code one;
    int status = 0;
    for (; len > 0 && *word >= '0' && *word <= '9'; word++, len--)
        status = status * 10 + (*word - '0');
    if (status && len > 0)
        word++, len--;
    if (!problem_code(word, len, &one)) {
        log_error("specification: no code %.*s", (int)len, word);
        return;
    }
    one.status = status ? status : one.status;
    add_one(l, &one);
}

static void add_codes(struct refusal_list *l, const char *words) {
    while (words && *words) {
        size_t len = strcspn(words, " ");
        if (len)
            add_code(l, words, len);
        words += len + (words[len] == ' ');
    }
}

static int by_status(const void *a, const void *b) {
    const struct api_code *x = a, *y = b;
    return x->status != y->status ? x->status - y->status : strcmp(x->code, y->code);
}

/* Some dialects tell errors with another status than ours. */
static void add_retold(struct refusal_list *l, const struct dialect *d) {
    size_t n = l->n;
    for (size_t i = 0; d && d->also_status && i < n; i++) {
        struct api_code one = l->items[i];
        one.status = d->also_status;
        add_one(l, &one);
    }
}

static void describe_refusals(const struct route_entry *e, struct api_doc *d) {
    struct refusal_list l = {0};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (usual[i].is_for(e->route))
            add_codes(&l, usual[i].codes);
    if (e->route->at_doors || (e->dialect && e->dialect->at_doors))
        add_codes(&l, AT_DOORS);
    add_codes(&l, e->route->doc.errors);
    add_retold(&l, e->dialect);
    if (l.n)
        qsort(l.items, l.n, sizeof *l.items, by_status);
    d->refusals = l.items;
    d->nrefusals = l.n;
    d->refusal = e->route->refusal                   ? e->route->refusal
                 : e->dialect && e->dialect->refusal ? e->dialect->refusal
                                                     : &error_schema;
}

/* ---- the document ---- */

#define TAGS_MAX 24

static const struct api_tag native_tags[] = {
    {"execute", "A program in a fresh sandbox, and what became of it"},
    {"sandboxes", "Sandboxes that stay: their kernels, files and network"},
    {"commands", "Commands in a sandbox that stays"},
    {"files", "The file store"},
    {"service", "The server itself"},
};

static void add_tags(const struct call *c, struct api_tag to[TAGS_MAX]) {
    size_t n = sizeof native_tags / sizeof *native_tags;
    memcpy(to, native_tags, sizeof native_tags);
    for (unsigned i = 0; i < c->api->nspeakers && n < TAGS_MAX - 1; i++) {
        const struct dialect *d = c->api->speakers[i].dialect;
        if (d->help)
            to[n++] = (struct api_tag){d->tables[0]->routes[0].doc.tag, d->help};
    }
    to[n] = (struct api_tag){0};
}

static void write_spec(const struct call *c, const struct dialect *only, struct buf *to) {
    const struct route_list *l = &c->api->routes;
    struct api_tag tags[TAGS_MAX];
    AUTO_FREE struct api_doc *docs = xcalloc(l->n, sizeof *docs);
    AUTO_FREE struct api_code *codes = xcalloc(problem_codes(NULL), sizeof *codes);
    struct api_spec s = {
        .title = "cloche", .version = CLOCHE_VERSION, .docs = docs, .tags = tags, .codes = codes};
    for (size_t i = 0; i < l->n; i++) {
        const struct route_entry *e = &l->items[i];
        if (!e->route->doc.summary || (only && e->dialect != only))
            continue;
        struct api_doc *d = &docs[s.n++];
        *d = e->route->doc;
        d->is_open = e->route->is_open;
        d->secret = e->dialect ? e->dialect->secret : NULL;
        describe_refusals(e, d);
    }
    add_tags(c, tags);
    s.ncodes = problem_codes(codes);
    openapi_write(&s, to);
    for (size_t i = 0; i < s.n; i++)
        free((void *)docs[i].refusals);
}

static struct blob *spec_of(const struct call *c, const struct dialect *only) {
    struct route_list *l = &c->api->routes;
    struct buf json = BUF_INIT;
    struct spec *s = l->specs;
    while (s && s->only != only)
        s = s->next;
    if (s)
        return s->json;
    s = xcalloc(1, sizeof *s);
    write_spec(c, only, &json);
    *s = (struct spec){.only = only, .json = blob_take(&json)};
    LIST_PUSH(&l->specs, s, next);
    return s->json;
}

const struct schema spec_schema = {"Specification", .value = &(struct field){.type = FIELD_OBJECT}};

void spec_give(struct call *c, const struct dialect *only) {
    struct blob *json = spec_of(c, only);
    const char *type = c->route->doc.reply_type;
    AUTO_ROPE all = ROPE_INIT;
    if (!type)
        type = JSON_TYPE;
    if (strcmp(http_method(c->req), "HEAD") == 0) { /* the length of a rope is not known */
        http_reply(c->req, 200, type, json->bytes.data, json->bytes.len);
        return;
    }
    rope_add_part(&all, json, 0, json->bytes.len);
    http_reply_rope(c->req, 200, type, &all);
}

void spec_give_all(struct call *c) {
    spec_give(c, NULL);
}
