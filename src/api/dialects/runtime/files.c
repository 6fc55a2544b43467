/* Sandbox Runtime: files into a session, and what there is. An upload goes into a file without a
 * name as it comes (see sandbox_files.c); it needs a session first, which may have to be made, and
 * is not read until then. */

#include "api/dialects/runtime/runtime.h"
#include "api/files/form_file.h"
#include "api/files/paths.h"
#include "base/fd.h"
#include "base/rope.h"
#include "loop/crew.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LIST_PAGE  5000
#define LIST_MAX   (32u << 20) /* bytes of a reply */
#define LIST_SLICE (64u << 10) /* of them, that are written at a time */
#define FORM_ROOM  (1u << 20)  /* for what a form has around the file */
#define NO_ROOM    "the session's disk has no room for all of it"

static const struct field create_fields[] = {
    {.name = "content",
     .type = FIELD_STRING,
     .flags = FIELD_REQUIRED | FIELD_LONG,
     .help = "UTF-8"},
    {.name = "filename", .type = FIELD_STRING, .flags = FIELD_REQUIRED, .help = "from the session"},
    {.name = "mode",
     .type = FIELD_INT,
     .flags = FIELD_LAX | FIELD_MIN | FIELD_MAX | FIELD_NULLABLE,
     .min = 0,
     .max = 511,
     .fallback = "420",
     .help = "permissions; 420 is 0644, and so are 0 and null"},
};
static const struct schema runtime_create_schema = {"RuntimeCreate", create_fields, 3, true};

/* ---- paths ---- */

static bool bad_path(struct call *c, const char *why) {
    runtime_error(c, 400, "bad_path", "Invalid file path: %s", why);
    return false;
}

/* The path without "/" and "./" at its beginning, which mean nothing. */
static const char *runtime_relative(const char *path) {
    while (*path == '/' || (path[0] == '.' && (path[1] == '/' || path[1] == '\0')))
        path++;
    return path;
}

static size_t part_len(const char *at) {
    return strcspn(at, "/");
}

static bool is_dots(const char *at, size_t most) {
    size_t len = part_len(at);
    return len > 0 && len <= most && strspn(at, ".") >= len;
}

bool runtime_path_is_good(struct call *c, const char *path) {
    path = runtime_relative(path);
    if (is_dots(path, 2))
        return bad_path(c, "child path cannot start with '.' or '..'");
    for (const char *at = path; *at; at += part_len(at), at += *at == '/') {
        if (part_len(at) == 2 && is_dots(at, 2))
            return bad_path(c, "child path cannot contain '..'");
    }
    return true;
}

static bool session_on_error(struct file_call *fc, int errnum) {
    struct call *c = fc->call;
    if (errnum == EXDEV)
        bad_path(c, "child path would escape parent directory");
    else if (errnum == ELOOP)
        bad_path(c, "it is a symbolic link");
    else if ((errnum == ENOENT || errnum == ENOTDIR) && !fc->writes)
        runtime_error(c, 404, "no_such_path", "File not found");
    else if ((errnum == EISDIR || errnum == ENXIO) && !fc->writes)
        runtime_error(c, 400, "not_a_file", "Not a file");
    else
        return false;
    return true;
}

void *runtime_file_call(struct call *c, const struct live *l, const char *path, size_t size,
                        void (*on_done)(struct file_call *fc)) {
    path = runtime_relative(path);
    if (!runtime_path_is_good(c, path))
        return NULL;
    struct file_call *fc = file_call_new_in(c, live_id(l), path, size, on_done);
    if (fc)
        fc->on_error = session_on_error;
    return fc;
}

/* ---- a file that is there as a whole ---- */

struct writing {
    struct file_call fc;
    struct runtime_file file;
};

static void write_on_place(struct file_call *fc, struct file_answer *a) {
    const struct writing *w = (const struct writing *)fc;
    struct call *c = fc->call;
    AUTO_FREE char *path = xstrdup(fc->path);
    void (*then)(struct call *, struct live *, const char *) = w->file.then;
    struct live *l = file_call_live(fc);
    (void)a;
    if (!l)
        return;
    file_call_leave(fc);
    then(c, l, path);
}

static void write_on_temp(struct file_call *fc, struct file_answer *a) {
    const struct writing *w = (const struct writing *)fc;
    const struct file_piece all = {w->file.data, w->file.len, 0};
    const struct file_question q = {
        .op = FILE_PLACE, .path = fc->path, .mode = w->file.mode, .fd = a->fd};
    if (file_call_write(fc, a->fd, &all, NO_ROOM))
        file_call_ask(fc, &q, write_on_place);
}

void runtime_write(struct call *c, const struct live *l, const struct runtime_file *f) {
    struct writing *w = runtime_file_call(c, l, f->path, sizeof *w, NULL);
    if (!w)
        return;
    w->file = *f;
    w->fc.writes = true;
    if (!*w->fc.path)
        bad_path(c, "there is no name");
    else if (f->len > files_room(live_sandbox(l)))
        file_call_disk_full(&w->fc, NO_ROOM);
    else if (file_call_fits(&w->fc, f->len))
        file_call_ask(&w->fc, &(struct file_question){.op = FILE_TEMP}, write_on_temp);
}

static void put_made(struct call *c, const char *path, uint64_t size) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_str(&j, "filename", path);
    jw_key_uint(&j, "size", size);
    jw_object_end(&j);
    runtime_reply(c, &json);
}

static void created(struct call *c, struct live *l, const char *path) {
    (void)l, (void)path;
    put_made(c, field_str(c->body, "filename", ""),
             json_string_length(json_object_get(c->body, "content")));
}

static void create(struct call *c, struct live *l) {
    const json_t *content = json_object_get(c->body, "content");
    uint32_t mode = (uint32_t)field_int_lax(c->body, "mode", 0);
    runtime_write(c, l,
                  &(struct runtime_file){.path = field_str(c->body, "filename", ""),
                                         .data = json_string_value(content),
                                         .len = json_string_length(content),
                                         .mode = mode ? mode : 0644,
                                         .then = created});
}

static void do_runtime_create(struct call *c) {
    runtime_use(c, create);
}

/* ---- an upload ---- */

struct upload {
    struct file_call fc;
    int fd;      /* owned: without a name yet */
    char *asked; /* owned: its name, as the client has it */
    uint64_t size;
    struct form_file file;
};

static void free_upload(struct file_call *fc) {
    struct upload *u = (struct upload *)fc;
    file_call_close(fc, &u->fd);
    free(u->asked);
    u->asked = NULL;
}

/* What it is called: by the query, or by the form. False when the client has its reply. */
static bool name_it(struct upload *u, const char *form_name) {
    struct call *c = u->fc.call;
    const char *asked = call_query(c, "filename");
    const char *name = asked && *asked ? asked : form_name;
    free(u->asked);
    u->asked = xstrdup(name);
    name = runtime_relative(name);
    if (!*name) {
        runtime_error(c, 400, "bad_value", "No filename provided");
        return false;
    }
    if (!runtime_path_is_good(c, name))
        return false;
    free(u->fc.path);
    u->fc.path = xstrdup(name);
    if (paths_normal(u->fc.path))
        return bad_path(c, "it has more than 64 components");
    if (strlen(u->fc.path) > ENTRY_PATH_MAX)
        return bad_path(c, "it has more than 4095 bytes");
    return true;
}

static bool upload_piece(struct http_req *r, const struct form_part *p) {
    struct call *c = http_user(r);
    struct upload *u = c->state;
    if (!form_file_is(&u->file, p))
        return true;
    if (p->first && !name_it(u, p->filename))
        return false;
    const struct file_piece piece = {p->data, p->len, u->size};
    u->size += p->len;
    return file_call_write(&u->fc, u->fd, &piece, NO_ROOM);
}

static void upload_on_place(struct file_call *fc, struct file_answer *a) {
    const struct upload *u = (const struct upload *)fc;
    (void)a;
    put_made(fc->call, u->asked, u->size);
}

static void upload_whole(struct http_req *r) {
    struct call *c = http_user(r);
    struct upload *u = c->state;
    if (!u->file.there) {
        form_file_missing(c, &u->file);
        return;
    }
    if (!http_form_is_whole(r)) {
        runtime_error(c, 400, "bad_form", "the form ends without its last boundary");
        return;
    }
    file_call_ask(
        &u->fc,
        &(struct file_question){.op = FILE_PLACE, .path = u->fc.path, .mode = 0644, .fd = u->fd},
        upload_on_place);
    fd_close(&u->fd);
}

static void upload_on_temp(struct file_call *fc, struct file_answer *a) {
    struct upload *u = (struct upload *)fc;
    u->fd = fd_take(&a->fd);
    http_proceed(fc->call->req);
}

static void upload(struct call *c, struct live *l) {
    struct upload *u = runtime_file_call(c, l, "", sizeof *u, free_upload);
    if (!u)
        return;
    u->fd = -1;
    u->fc.writes = true;
    u->fc.on_gone = free_upload;
    if (http_body_length(c->req) > files_room(live_sandbox(l)) + FORM_ROOM)
        file_call_disk_full(&u->fc, NO_ROOM);
    else if (file_call_fits(&u->fc, http_body_length(c->req)))
        file_call_ask(&u->fc, &(struct file_question){.op = FILE_TEMP}, upload_on_temp);
}

static void do_runtime_upload(struct call *c) {
    if (http_take_form(c->req, upload_piece, upload_whole) < 0) {
        form_file_missing(c, NULL);
        return;
    }
    http_hold(c->req);
    runtime_use(c, upload);
}

/* ---- lists ---- */

struct listing {
    struct file_call fc;
    struct runtime_listing how;
    struct file_page page;   /* the last page that came */
    const char *last;        /* the last path of it that was written */
    struct loop_sharer turn; /* in which the rest of it is written */
    struct rope items;
    bool comma;
};

static void free_listing(struct file_call *fc) {
    struct listing *l = (struct listing *)fc;
    loop_share_leave(&l->turn);
    file_page_done(&l->page);
    rope_done(&l->items);
}

static void put_item(const struct listing *l, const struct entry *f, struct jw *j) {
    const char *name = paths_name(f->path), *dot = strrchr(name, '.');
    bool is_log = strcmp(name, "stdout.log") == 0 || strcmp(name, "stderr.log") == 0;
    if (f->type != ENTRY_FILE || (is_log && !l->how.for_status))
        return;
    jw_object(j);
    jw_key_str(j, "filename", f->path);
    jw_key_uint(j, "size", f->size);
    jw_key_str(j, "type", dot ? dot + 1 : "unknown");
    if (l->how.for_status)
        jw_key_real(j, "modified_at", (double)f->mtime_ns / 1e9);
    jw_object_end(j);
}

static void list_on_page(struct file_call *fc, struct file_answer *a);

static void ask_page(struct listing *l, const char *after) {
    const struct file_question q = {.op = FILE_LIST,
                                    .path = l->fc.path,
                                    .recursive = l->how.recursive,
                                    .most = LIST_PAGE,
                                    .after = after};
    file_call_ask(&l->fc, &q, list_on_page);
}

static void finish_list(struct listing *l) {
    struct live *live = file_call_live(&l->fc);
    if (live)
        l->how.reply(l->fc.call, live, &l->items);
}

static void put_some(struct listing *l) {
    AUTO_BUF piece = BUF_INIT;
    struct jw j = {.to = &piece, .comma = l->comma};
    struct entry f;
    while (piece.len < LIST_SLICE && file_page_next(&l->page, &f) > 0) {
        put_item(l, &f, &j);
        l->last = f.path;
    }
    l->comma = j.comma;
    rope_add(&l->items, &piece);
}

static void list_on_turn(struct loop_sharer *turn) {
    struct listing *l = turn->arg;
    struct call *c = l->fc.call;
    put_some(l);
    if (l->items.bytes > LIST_MAX)
        runtime_error(c, 400, "list_too_long",
                      "there are too many files for one list: list directories one by one");
    else if (!file_page_is_read(&l->page))
        loop_share_wait(&c->api->o.engine->listing, turn);
    else if (l->page.cut)
        ask_page(l, l->last);
    else
        finish_list(l);
}

/* In a turn that has time for lists. */
static void list_on_page(struct file_call *fc, struct file_answer *a) {
    struct listing *l = (struct listing *)fc;
    file_page_move(&l->page, &a->page);
    l->last = "";
    list_on_turn(&l->turn);
}

static bool no_directory(struct file_call *fc, int errnum) {
    if (errnum != ENOENT && errnum != ENOTDIR)
        return session_on_error(fc, errnum);
    runtime_error(fc->call, 404, "no_such_path", "Directory not found: %s", fc->path);
    return true;
}

void runtime_list(struct call *c, const struct live *live, const struct runtime_listing *how) {
    struct listing *l = runtime_file_call(c, live, how->path, sizeof *l, free_listing);
    if (!l)
        return;
    l->how = *how;
    l->page = (struct file_page)FILE_PAGE_INIT;
    l->turn =
        (struct loop_sharer){.fn = list_on_turn, .arg = l, .owner = crew_owner(c->who.tenant)};
    l->fc.on_error = no_directory;
    ask_page(l, "");
}

void runtime_reply_files(struct call *c, struct jw *j, const struct rope *items) {
    AUTO_ROPE whole = ROPE_INIT;
    jw_key(j, "files");
    jw_array(j);
    rope_add(&whole, j->to);
    rope_add_rope(&whole, items);
    jw_array_end(j);
    jw_object_end(j);
    rope_add(&whole, j->to);
    runtime_reply_rope(c, &whole);
}

static void put_files(struct call *c, struct live *l, const struct rope *items) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    (void)l;
    jw_object(&j);
    runtime_reply_files(c, &j, items);
}

/* As FastAPI reads a boolean. */
static bool read_bool(const char *text, bool *ret) {
    static const char *const words[] = {"true",  "1", "yes", "on",  "t", "y",
                                        "false", "0", "no",  "off", "f", "n"};
    for (size_t i = 0; i < 12; i++) {
        if (strcasecmp(words[i], text) == 0) {
            *ret = i < 6;
            return true;
        }
    }
    return false;
}

static void list(struct call *c, struct live *l) {
    const char *recursive = call_query(c, "recursive");
    struct runtime_listing how = {.path = c->params[1], .reply = put_files};
    if (recursive && !read_bool(recursive, &how.recursive))
        runtime_bad_query(c, "recursive", "bool_parsing",
                          "Input should be a valid boolean, unable to interpret input");
    else
        runtime_list(c, l, &how);
}

static void do_runtime_files(struct call *c) {
    runtime_use(c, list);
}

/* GET /files/ID is GET /files/ID/: the client is sent there, as FastAPI does. */
static void do_runtime_files_there(struct call *c) {
    const char *query = http_raw_query(c->req);
    AUTO_BUF to = BUF_INIT;
    paths_encode(http_path(c->req), &to);
    buf_addf(&to, "/%s%s", query ? "?" : "", query ? query : "");
    http_add_header(c->req, "Location", to.data);
    http_reply(c->req, 307, NULL, "", 0);
}

static const struct field made_fields[] = {
    HAS("filename", FIELD_STRING),
    HAS("size", FIELD_INT),
};
RUNTIME_REPLY(made_reply, "RuntimeFile", made_fields);
static const struct field item_fields[] = {
    HAS("filename", FIELD_STRING),
    HAS("size", FIELD_INT),
    HAS("type", FIELD_STRING),
};
static const struct schema item_schema = {SCHEMA("RuntimeListedFile", item_fields)};
static const struct field listed_fields[] = {HAS("files", LIST_OF(item_schema))};
RUNTIME_REPLY(list_reply, "RuntimeFiles", listed_fields);

/* As FastAPI, it takes no notice of others. */
static const struct field upload_query_fields[] = {
    {.name = "filename", .help = "instead of the form's"},
};
static const struct schema upload_query = {"", upload_query_fields, 1, true};
static const struct field list_query_fields[] = {
    {.name = "recursive", .type = FIELD_BOOL, .fallback = "true"},
};
static const struct schema list_query = {"", list_query_fields, 1, true};

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"POST", "/workspace/se/upload/{session_id}", "Upload a file to a session",
      "sandbox-runtime", &upload_schema, "multipart/form-data", 200, "its name and size", JSON_TYPE,
      &upload_query, .gives = &made_reply,
      .errors = ERRORS_OF_SESSION_FILE "bad_fields bad_form"}, do_runtime_upload},
    {{"POST", "/workspace/se/create/{session_id}", "Make a file of text in a session",
      "sandbox-runtime", &runtime_create_schema, NULL, 200, "its name and size", JSON_TYPE,
      .gives = &made_reply, .errors = ERRORS_OF_SESSION_FILE}, do_runtime_create, .body_max = 64 * MB},
    {{"GET", "/workspace/se/files/{session_id}/{path...}", "List files of a session",
      "sandbox-runtime", NULL, NULL, 200, "the files", JSON_TYPE, &list_query,
      .gives = &list_reply, .errors = ERRORS_OF_SESSION_FILE "bad_fields list_too_long"}, do_runtime_files},
    {{.method = "GET", .path = "/workspace/se/files/{session_id}"}, do_runtime_files_there},
};
/* clang-format on */
const struct route_table runtime_files_routes = ROUTE_TABLE(routes);
