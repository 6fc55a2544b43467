/* The file store over HTTP: /v1/files, as the Code Interpreter API has it. Uploads go to disk as
 * they come. */

#include "api/native/files.h"
#include "api/core/body.h"
#include "api/files/download.h"
#include "api/files/form_file.h"
#include "api/jobs/replays.h"
#include "api/native/native.h"
#include "base/fd.h"
#include "engine/store/upload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct upload {
    struct store_upload *to; /* NULL before the file and after it */
    struct call *call;
    char *name; /* owned */
    struct form_file file;
    struct store_entry entry;
    /* With an Idempotency-Key. Forms have a new boundary each time: what must be the same are the
     * file's name and bytes. */
    struct replay *first;  /* it is this request that makes the file */
    struct replay *repeat; /* held: that was made before; this one is read, and not stored */
    struct sha256_ctx hash;
    uint64_t size; /* of what is read only */
};

static void upload_free(void *state) {
    struct upload *u = state;
    if (u->to)
        store_abort(u->to);
    if (u->repeat)
        replay_hold(u->repeat, false);
    if (u->first) /* a second request with the same key is told to come back */
        replay_fail(u->first, &(struct problem){.status = 503, .code = "client_gone"});
    store_entry_done(&u->entry);
    free(u->name);
    free(u);
}

static void upload_too_large(struct call *c) {
    char text[100];
    snprintf(text, sizeof text, "File size exceeds maximum of %u MB", c->api->config->http.file_mb);
    call_refuse(c, "file_too_large", "%s", text);
}

static bool upload_failed(struct upload *u, const struct err *e) {
    if (strcmp(e->kind, "file_too_large") == 0)
        upload_too_large(u->call);
    else if (strcmp(e->kind, "disk_full") == 0)
        call_problem(u->call, &(struct problem){.status = 507,
                                                .code = "disk_full",
                                                .message = e->text,
                                                .remediation = "delete files, or try again later",
                                                .retryable = true});
    else
        call_fail(u->call, e);
    return false;
}

static bool piece(struct http_req *r, const struct form_part *p) {
    struct call *c = http_user(r);
    struct upload *u = c->state;
    struct err e;
    if (!form_file_is(&u->file, p))
        return true;
    keys_hash_add(&u->hash, p->data, p->len);
    if (p->first) {
        u->name = xstrdup(p->filename);
        if (!u->repeat && store_begin(c->api->o.store, c->who.tenant, &u->to, &e) < 0)
            return upload_failed(u, &e);
    }
    u->size += p->len;
    if (u->repeat && u->size > (uint64_t)c->api->config->http.file_mb << 20) {
        upload_too_large(c);
        return false;
    }
    return !u->to || store_append(u->to, p->data, p->len, &e) == 0 || upload_failed(u, &e);
}

static const struct field entry_fields[] = {
    HAS("file_id", FIELD_STRING),
    HAS("filename", FIELD_STRING),
    HAS("size_bytes", FIELD_INT),
};
const struct schema files_entry_schema = {SCHEMA("StoredFile", entry_fields)};

void files_put_entry(struct jw *j, const struct store_entry *e) {
    jw_key_str(j, "file_id", e->id);
    jw_key_str(j, "filename", e->name);
    jw_key_uint(j, "size_bytes", e->size);
}

static void hash_upload(struct upload *u, uint8_t ret[32]) {
    struct {
        uint8_t name[32], bytes[32];
    } both;
    body_request_hash(http_path(u->call->req), u->name, strlen(u->name), both.name);
    keys_hash_end(&u->hash, both.bytes);
    body_request_hash(http_path(u->call->req), &both, sizeof both, ret);
}

static void keep_reply(struct upload *u, const uint8_t hash[32], const struct buf *json) {
    struct replay *r = u->first;
    u->first = NULL;
    if (!r)
        return;
    replay_set_hash(r, hash);
    replay_begin(r, 201, "application/json", NULL);
    replay_write(r, json->data, json->len);
    replay_end(r);
}

static void whole(struct http_req *r) {
    struct call *c = http_user(r);
    struct upload *u = c->state;
    struct err e;
    uint8_t hash[32];
    if (!u->file.there) {
        form_file_missing(c, &u->file);
        return;
    }
    if (!http_form_is_whole(r)) {
        call_refuse(c, "bad_form", "the form ends without its last boundary");
        return;
    }
    hash_upload(u, hash);
    if (u->repeat) {
        replay_answer(u->repeat, c, hash);
        return;
    }
    struct store_upload *to = u->to;
    u->to = NULL;
    if (store_finish(to, u->name, &u->entry, &e) < 0) {
        upload_failed(u, &e);
        return;
    }
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    files_put_entry(&j, &u->entry);
    jw_object_end(&j);
    call_json(c, 201, &json);
    keep_reply(u, hash, &json);
}

/* False when the call is answered. */
static bool look_up_key(struct call *c, struct upload *u) {
    const char *key;
    if (!replay_key(c, &key))
        return false;
    struct replay *r = key ? replay_find(c, key) : NULL;
    if (!key)
        return true;
    if (!r) {
        u->first = replay_add(c, key);
        return u->first != NULL;
    }
    if (!replay_is_of(r, c)) {
        replay_conflict(c);
        return false;
    }
    if (!replay_is_done(r)) {
        call_refuse(c, "idempotency_key_busy",
                    "an upload with this Idempotency-Key is still "
                    "under way");
        return false;
    }
    replay_hold(r, true);
    u->repeat = r;
    return true;
}

#define FORM_ROOM (1u << 20) /* for what a form has around the file */

static void do_upload(struct call *c) {
    if (http_body_length(c->req) > ((uint64_t)c->api->config->http.file_mb << 20) + FORM_ROOM) {
        upload_too_large(c);
        return;
    }
    struct upload *u = xcalloc(1, sizeof *u);
    u->call = c;
    c->state = u;
    c->state_done = upload_free;
    keys_hash_init(&u->hash);
    if (!look_up_key(c, u))
        return;
    if (http_take_form(c->req, piece, whole) < 0)
        /* Not a form: there is no file in it. */
        http_take_body(c->req, &(struct http_take){1 << 20, whole, whole, whole});
}

static void files_not_found(struct call *c, const struct err *e) {
    if (strcmp(e->kind, "no_file") != 0) { /* it may well be there */
        call_fail(c, e);
        return;
    }
    struct problem p = {.status = 404,
                        .code = "no_file",
                        .remediation = "upload it again: files are kept for a time only"};
    snprintf(p.text, sizeof p.text, "File with ID '%.200s' not found", c->params[0]);
    call_problem(c, &p);
}

/* A file never changes under its id: its id is its tag. */
static void send_entry(struct call *c, const struct store_entry *entry, int *fd) {
    char tag[STORE_ID_LEN + 3];
    snprintf(tag, sizeof tag, "\"%s\"", entry->id);
    download_reply(c,
                   &(struct download){.tag = tag,
                                      .name = entry->name,
                                      .modified = (time_t)entry->uploaded,
                                      .size = entry->size},
                   fd);
}

static void do_download(struct call *c) {
    struct store_entry entry;
    struct err e;
    AUTO_FD fd = -1;
    if (store_find(c->api->o.store, c->who.tenant, c->params[0], &entry, &fd, &e) < 0) {
        files_not_found(c, &e);
        return;
    }
    send_entry(c, &entry, &fd);
    store_entry_done(&entry);
}

static void do_delete(struct call *c) {
    struct err e;
    if (store_delete(c->api->o.store, c->who.tenant, c->params[0], &e) < 0)
        files_not_found(c, &e);
    else
        http_reply(c->req, 204, NULL, "", 0);
}

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"POST", "/v1/files", "Upload a file", "files", &upload_schema, "multipart/form-data", 201,
      "its id, name and size", JSON_TYPE, .gives = &files_entry_schema, .replays = true,
      .errors = "bad_form bad_fields file_too_large 507:disk_full idempotency_key_busy"}, do_upload},
    {{"GET", "/v1/files/{file_id}", "Download a file", "files", NULL, NULL, 200, "its bytes",
      "application/octet-stream", .more = download_replies, .errors = ERRORS_OF_DOWNLOAD "no_file"},
     do_download},
    {{"DELETE", "/v1/files/{file_id}", "Delete a file", "files", NULL, NULL, 204, "nothing", NULL,
      .errors = "no_file"}, do_delete},
};
/* clang-format on */
const struct route_table files_routes = ROUTE_TABLE(routes);
