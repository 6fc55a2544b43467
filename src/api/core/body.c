/* See body.h. The crew has a body twice, to read it and to free it; in between the body belongs to
 * the loop alone. References to single texts may outlive the body: jansson counts them atomically.
 */

#include "api/core/body.h"

#include "base/fd.h"
#include "http/fields_read.h"
#include "http/json_text.h"
#include "loop/crew.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_BYTES 128u /* what a tree takes for each value that json_text_values finds */
#define TREE_MAX    ((size_t)VALUE_BYTES * 1000) /* bytes of a tree that need not count */
#define TRIM_ABOVE  ((size_t)64 << 20)           /* bytes of bodies */

struct body {
    struct work work;
    struct api *api;   /* borrowed */
    struct crew *crew; /* borrowed */
    struct call *call; /* borrowed; NULL when the call is over */
    void (*then)(struct call *c);
    unsigned refs;
    size_t tree;       /* bytes that the tree takes, or will take until `is_read` */
    size_t counted;    /* how many of them are in `count` */
    size_t text_bytes; /* how many of its text are in there */
    size_t most;       /* what `count` had at first */
    bool is_weighed, is_read, is_refused; /* for want of room */
    /* what the reader needs */
    const struct schema *schema;
    void (*prepare)(struct body *b, const json_t *request); /* or NULL */
    struct buf text;
    struct http_count
        count;         /* SECURITY: held until the body is freed, even if its sender has left */
    char *type, *path; /* owned; `path` only when there is an Idempotency-Key */
    /* what it made */
    json_t *json; /* NULL: `reply` says why */
    int status;
    struct buf reply;
    uint8_t hash[32];
    struct body_text *texts;
    unsigned ntexts;
    const json_t *part; /* whose texts are being made */
};

/* A part of it that goes before the rest. */
struct drop {
    struct work work;
    struct body *body; /* a reference */
    json_t *part;      /* owned, as the descriptors */
    int *fds;
    unsigned nfds;
    size_t tree, text; /* bytes that it took */
};

/* ---- beside the loop ---- */

static struct body_text *text_of(struct body *b, const json_t *of) {
    b->texts = xrealloc(b->texts, (b->ntexts + 1) * sizeof *b->texts);
    struct body_text *t = &b->texts[b->ntexts++];
    *t = (struct body_text){.of = of, .part = b->part, .fd = -1};
    return t;
}

struct body_text *body_add_text(struct body *b, const json_t *of) {
    return json_string_length(of) > BODY_LONG_TEXT ? text_of(b, of) : NULL;
}

void body_part(struct body *b, const json_t *part) {
    b->part = part;
}

void body_text_hash(struct body_text *t) {
    keys_sha256(json_string_value(t->of), json_string_length(t->of), t->sha256);
}

void body_text_seal(struct body_text *t, const char *data, size_t len) {
    struct err e;
    if (memfd_of("text", data, len, &t->fd, &e) < 0)
        t->why = e;
}

void body_request_hash(const char *path, const void *data, size_t len, uint8_t ret[32]) {
    struct sha256_ctx ctx;
    keys_hash_init(&ctx);
    keys_hash_add(&ctx, path, strlen(path) + 1);
    keys_hash_add(&ctx, data, len);
    keys_hash_end(&ctx, ret);
}

static size_t tree_bytes(const json_t *v) {
    size_t bytes = json_is_object(v) || json_is_array(v) ? 2 * VALUE_BYTES : VALUE_BYTES, i;
    const char *key;
    json_t *inner;
    json_array_foreach(v, i, inner) bytes += tree_bytes(inner);
    json_object_foreach((json_t *)v, key, inner) bytes += tree_bytes(inner);
    return bytes;
}

static size_t text_bytes(const json_t *v) {
    size_t bytes = json_string_length(v), i;
    const char *key;
    json_t *inner;
    json_array_foreach(v, i, inner) bytes += text_bytes(inner);
    json_object_foreach((json_t *)v, key, inner) bytes += text_bytes(inner);
    return bytes;
}

static void make_tree(struct body *b) {
    size_t needed = b->tree;
    if (fields_read(b->schema, b->type, b->text.data, b->text.len, &b->json, &b->status,
                    &b->reply) < 0)
        b->json = NULL;
    buf_done(&b->text);
    b->text = (struct buf)BUF_INIT;
    if (b->json)
        fields_drop_unknown(b->schema, b->json);
    b->tree = b->json ? tree_bytes(b->json) : 0;
    if (b->tree > needed)
        b->tree = needed;
    if (b->json && b->prepare)
        b->prepare(b, b->json);
}

/* A tree that may be large waits until the loop says that there is room. */
static bool read_slice(struct work *w) {
    struct body *b = w->arg;
    if (b->is_weighed) {
        make_tree(b);
        return false;
    }
    if (b->path)
        body_request_hash(b->path, b->text.data, b->text.len, b->hash);
    b->tree = VALUE_BYTES * json_text_values(b->text.data, b->text.len, 2 * FIELDS_VALUES_MAX);
    if (b->tree <= TREE_MAX)
        make_tree(b);
    return false;
}

static bool free_slice(struct work *w) {
    struct body *b = w->arg;
    for (unsigned i = 0; i < b->ntexts; i++)
        fd_close(&b->texts[i].fd);
    free(b->texts);
    json_decref(b->json);
    buf_done(&b->text);
    buf_done(&b->reply);
    free(b->type);
    free(b->path);
    return false;
}

static bool drop_slice(struct work *w) {
    struct drop *d = w->arg;
    d->tree = tree_bytes(d->part);
    d->text = text_bytes(d->part);
    json_decref(d->part);
    for (unsigned i = 0; i < d->nfds; i++)
        fd_close(&d->fds[i]);
    free(d->fds);
    return false;
}

/* ---- in the loop ---- */

static bool trim_slice(struct work *w) {
    (void)w;
    malloc_trim(0);
    return false;
}

static void trim_done(struct work *w) {
    struct api *a = w->arg;
    a->bodies_trim = BODIES_KEPT;
    free(w);
}

/* The allocator keeps what was freed, which may be gigabytes. When little is left of much, it is
 * told to give the memory back. */
static void give_back(struct api *a) {
    if (a->bodies_trim != BODIES_WERE_MANY || http_bodies(a->http) > TRIM_ABOVE / 4)
        return;
    struct work *w = xcalloc(1, sizeof *w);
    *w = (struct work){.slice = trim_slice, .done = trim_done, .arg = a, .is_long = true};
    a->bodies_trim = BODIES_BEING_TRIMMED;
    crew_add(a->o.engine->crew, w);
}

static void note_many(const struct body *b) {
    struct api *a = b->api;
    if (a->bodies_trim == BODIES_KEPT &&
        (http_bodies(a->http) > TRIM_ABOVE || b->most > TRIM_ABOVE / 4))
        a->bodies_trim = BODIES_WERE_MANY;
}

static void on_freed(struct work *w) {
    struct body *b = w->arg;
    note_many(b);
    http_uncount(&b->count);
    give_back(b->api);
    free(b);
}

static void release(struct body *b) {
    if (b->refs > 0 || !b->is_read)
        return;
    b->work.slice = free_slice; /* the work has the owner that the reading had */
    b->work.done = on_freed;
    crew_add(b->crew, &b->work);
}

/* Whether the tree has to be made yet. */
static bool weigh(struct body *b) {
    if (b->is_weighed || b->tree <= TREE_MAX)
        return false;
    b->is_weighed = true;
    b->is_refused = !b->call || !http_count_more(&b->count, b->tree);
    b->counted = b->is_refused ? 0 : b->tree;
    return !b->is_refused;
}

static void body_on_read(struct work *w) {
    struct body *b = w->arg;
    if (weigh(b)) {
        crew_add(b->crew, &b->work);
        return;
    }
    b->most = b->count.bytes;
    note_many(b);
    if (b->counted > b->tree) {
        http_count_less(&b->count, b->counted - b->tree);
        b->counted = b->tree;
    }
    b->is_read = true;
    if (b->call)
        b->then(b->call);
    else
        release(b);
}

void body_read(struct call *c, void (*then)(struct call *c)) {
    struct body *b = xcalloc(1, sizeof *b);
    const char *type = http_header(c->req, "Content-Type");
    *b = (struct body){.api = c->api,
                       .crew = c->api->o.engine->crew,
                       .call = c,
                       .then = then,
                       .refs = 1,
                       .schema = c->route->doc.body,
                       .prepare = c->route->prepare,
                       .text = http_move_body(c->req),
                       .count = http_move_count(c->req),
                       .reply = BUF_INIT,
                       .type = type ? xstrdup(type) : NULL};
    if (http_header(c->req, "Idempotency-Key"))
        b->path = xstrdup(http_path(c->req));
    b->text_bytes = b->text.len < b->count.bytes ? b->text.len : b->count.bytes;
    b->work = (struct work){.slice = read_slice,
                            .done = body_on_read,
                            .arg = b,
                            .owner = crew_owner(c->who.tenant),
                            .is_long = b->text.len > CREW_LONG};
    c->large = b;
    crew_add(b->crew, &b->work);
}

size_t body_lacks(const struct body *b) {
    return b->is_refused ? b->tree : 0;
}

int body_take(struct call *c, json_t **ret, int *ret_status, struct buf *reply) {
    struct body *b = c->large;
    *ret_status = b->status;
    if (b->json) {
        *ret = json_incref(b->json);
        return 0;
    }
    *reply = b->reply;
    b->reply = (struct buf)BUF_INIT;
    return -1;
}

void body_leave(struct body *b) {
    if (!b)
        return;
    b->call = NULL;
    body_unref(b);
}

struct body *body_ref(struct body *b) {
    if (b)
        b->refs++;
    return b;
}

void body_unref(struct body *b) {
    if (!b)
        return;
    b->refs--;
    release(b);
}

static void on_dropped(struct work *w) {
    struct drop *d = w->arg;
    struct body *b = d->body;
    size_t tree = d->tree < b->counted ? d->tree : b->counted;
    size_t text = d->text < b->text_bytes ? d->text : b->text_bytes;
    b->counted -= tree;
    b->text_bytes -= text;
    http_count_less(&b->count, tree + text);
    give_back(b->api);
    body_unref(b);
    free(d);
}

void body_drop(struct body *b, json_t *part) {
    if (!b) {
        json_decref(part);
        return;
    }
    struct drop *d = xcalloc(1, sizeof *d);
    *d = (struct drop){.body = body_ref(b), .part = part};
    for (unsigned i = 0; i < b->ntexts; i++) {
        struct body_text *t = &b->texts[i];
        if (t->part != part)
            continue;
        d->fds = xrealloc(d->fds, (d->nfds + 1) * sizeof *d->fds);
        d->fds[d->nfds++] = fd_take(&t->fd);
        t->of = t->part = NULL;
    }
    d->work = (struct work){.slice = drop_slice,
                            .done = on_dropped,
                            .arg = d,
                            .owner = b->work.owner,
                            .is_long = b->tree > CREW_LONG};
    crew_add(b->crew, &d->work);
}

bool body_hash(const struct body *b, uint8_t ret[32]) {
    if (!b || !b->path)
        return false;
    memcpy(ret, b->hash, sizeof b->hash);
    return true;
}

const struct body_text *body_find(const struct body *b, const json_t *value) {
    for (unsigned i = 0; b && i < b->ntexts; i++) {
        if (b->texts[i].of == value)
            return &b->texts[i];
    }
    return NULL;
}

int body_memfd(const struct body *b, const json_t *text, int *ret_fd, struct err *e) {
    const struct body_text *t = body_find(b, text);
    if (!t)
        return memfd_of("text", json_string_value(text), json_string_length(text), ret_fd, e);
    if (t->fd < 0) {
        *e = t->why;
        return -1;
    }
    *ret_fd = fcntl(t->fd, F_DUPFD_CLOEXEC, 3); /* an item of a batch may be tried again */
    return *ret_fd < 0 ? err_sys(e, "duplicate a descriptor") : 0;
}

void body_audit(const struct body *b, const json_t *code, bool keep, struct audit_code *ret) {
    const struct body_text *t = body_find(b, code);
    const char *text = json_string_value(code);
    size_t len = json_string_length(code);
    if (t)
        audit_code_of(ret, t->sha256, text, len, keep);
    else
        audit_code(ret, text, len, keep);
}
