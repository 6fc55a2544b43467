/* The files of a live sandbox: /v1/sandboxes/{id}/files/{path}. Everything goes through the
 * sandbox's init, which resolves paths beneath the workspace; what we hold are descriptors of
 * regular files that it opened. An upload goes into a file without a name, as it comes, and gets
 * its name when it is whole: until then what was there stays. */

#include "api/files/sandbox_files.h"
#include "api/files/download.h"
#include "api/files/init_call.h"
#include "api/files/paths.h"
#include "base/fd.h"
#include "wire/entry.h"
#include "wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIST_MOST    10000
#define LIST_DEFAULT 1000

/* ---- entries as JSON ---- */

static const char *const type_names[] = {[ENTRY_FILE] = "file",
                                         [ENTRY_DIRECTORY] = "directory",
                                         [ENTRY_SYMLINK] = "symlink",
                                         [ENTRY_OTHER] = "other"};

static const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void put_entry(struct jw *j, const struct entry *f) {
    char mode[8];
    snprintf(mode, sizeof mode, "%04o", f->mode);
    jw_object(j);
    jw_key_str(j, "name", name_of(f->path));
    jw_key_str(j, "path", f->path);
    if (!json_is_utf8(f->path, strlen(f->path))) {
        AUTO_BUF url = BUF_INIT;
        paths_encode(f->path, &url);
        jw_key_str(j, "path_encoded", url.data);
    }
    jw_key_str(j, "type", type_names[f->type]);
    jw_key_uint(j, "size", f->size);
    jw_key_str(j, "mode", mode);
    jw_key_real(j, "modified", (double)f->mtime_ns / 1e9);
    if (f->type == ENTRY_SYMLINK)
        jw_key_str(j, "target", f->target);
    jw_object_end(j);
}

/* ---- GET ---- */

void box_send_file(struct box *b, struct wire_in *in, const char *type) {
    AUTO_FD fd = wire_take_fd(in);
    struct stat st;
    char tag[80];
    if (fd < 0 || fstat(fd, &st) < 0) {
        box_fail(b, EIO, "init opened no file");
        return;
    }
    /* The change time is nobody's to set, unlike the time of modification. */
    snprintf(tag, sizeof tag, "\"%llx-%llx-%llx\"", (unsigned long long)st.st_ino,
             (unsigned long long)st.st_ctim.tv_sec * 1000000000u + (unsigned)st.st_ctim.tv_nsec,
             (unsigned long long)st.st_size);
    b->begun = true;
    download_reply(b->call,
                   &(struct download){.tag = tag,
                                      .name = name_of(b->path),
                                      .modified = st.st_mtim.tv_sec,
                                      .size = (uint64_t)st.st_size,
                                      .type = type},
                   &fd);
}

static void on_file(struct box *b, struct wire_in *in) {
    box_send_file(b, in, NULL);
}

/* A cursor is the last page's last path, in hexadecimal: names hold any byte. */
static void put_cursor(struct jw *j, const char *path) {
    AUTO_BUF hex = BUF_INIT;
    for (const char *c = path; *c; c++)
        buf_addf(&hex, "%02x", (unsigned char)*c);
    jw_key_str(j, "next", hex.data);
}

static bool read_cursor(const char *hex, char path[ENTRY_PATH_MAX + 1]) {
    size_t n = 0, len = strlen(hex);
    if (len % 2 || len > (size_t)2 * ENTRY_PATH_MAX || strspn(hex, "0123456789abcdef") != len)
        return false;
    for (; *hex; hex += 2) {
        const char two[] = {hex[0], hex[1], '\0'};
        path[n++] = (char)strtoul(two, NULL, 16);
    }
    path[n] = '\0';
    return strlen(path) == n;
}

static int write_list(struct box *b, const struct buf *records, bool cut, struct buf *to) {
    const uint8_t *at = (const uint8_t *)records->data, *end = at + records->len;
    struct jw j = JW_INIT(to);
    struct entry f = {.path = ""};
    jw_object(&j);
    jw_key_str(&j, "path", b->path);
    jw_key(&j, "entries");
    jw_array(&j);
    while (at < end) {
        if (!entry_get(&at, end, &f))
            return -1;
        put_entry(&j, &f);
    }
    jw_array_end(&j);
    if (cut)
        put_cursor(&j, f.path);
    else
        jw_key_null(&j, "next");
    jw_object_end(&j);
    return 0;
}

static void on_list(struct box *b, struct wire_in *in) {
    AUTO_BUF records = BUF_INIT, json = BUF_INIT;
    (void)wire_get_u32(in);
    bool cut = wire_get_u32(in);
    if (box_records(in, &records) < 0 || write_list(b, &records, cut, &json) < 0)
        box_fail(b, EPROTO, "the list is malformed");
    else
        call_json(b->call, 200, &json);
}

#define RECURSIVE(text)                                                                            \
    { .name = "recursive", .type = FIELD_BOOL, .fallback = "false", .help = text }
static const struct field list_fields[] = {
    RECURSIVE("of a directory: all below it"),
    {.name = "limit",
     .type = FIELD_INT,
     .flags = FIELD_MIN | FIELD_MAX,
     .min = 1,
     .max = LIST_MOST,
     .fallback = "1000",
     .help = "of a directory: entries in a page"},
    {.name = "after", .type = FIELD_STRING, .help = "what an earlier page has as next"},
};
static const struct schema sandbox_file_query = {"", list_fields, 3, false};
static const struct field put_fields[] = {
    {.name = "mode", .type = FIELD_STRING, .fallback = "\"0644\"", .help = "permissions"},
};
static const struct schema sandbox_file_put_query = {"", put_fields, 1, false};
static const struct field delete_fields[] = {
    RECURSIVE("a directory with all that is in it"),
};
static const struct schema sandbox_file_delete_query = {"", delete_fields, 1, false};

static void ask_list(struct box *b) {
    struct wire_out o;
    bool recursive = false;
    uint32_t limit = LIST_DEFAULT;
    const char *cursor = http_query(b->call->req, "after");
    char after[ENTRY_PATH_MAX + 1] = "";
    if (!box_query_bool(b, "recursive", &recursive) ||
        !box_query_u32(b, "limit", 1, LIST_MOST, &limit))
        return;
    if (cursor && !read_cursor(cursor, after)) {
        box_bad_value(b, "after", "what an earlier page has as next");
        return;
    }
    wire_begin(&o, WIRE_I_LIST);
    wire_put_str(&o, b->path);
    wire_put_u32(&o, recursive);
    wire_put_u32(&o, limit);
    wire_put_str(&o, after);
    box_ask(b, &o, on_list);
}

static bool list_instead(struct box *b, int errnum) {
    if (errnum != EISDIR)
        return false;
    b->on_error = NULL;
    ask_list(b);
    return true;
}

static void ask_open(struct box *b, box_fn *then) {
    struct wire_out o;
    wire_begin(&o, WIRE_I_OPEN);
    wire_put_u32(&o, O_RDONLY);
    wire_put_u32(&o, 0);
    wire_put_str(&o, b->path);
    box_ask(b, &o, then);
}

static void do_sandbox_file(struct call *c) {
    struct box *b = box_new(c, sizeof *b, NULL);
    if (!b)
        return;
    if (!*b->path) {
        ask_list(b);
        return;
    }
    b->on_error = list_instead;
    ask_open(b, on_file);
}

struct get {
    struct box box;
    const char *type;
};

static void on_typed_file(struct box *b, struct wire_in *in) {
    AUTO_BUF name = BUF_INIT;
    paths_disposition(name_of(b->path), &name);
    http_add_header(b->call->req, "Content-Disposition", name.data);
    box_send_file(b, in, ((struct get *)b)->type);
}

static bool no_file(struct box *b, int errnum) {
    if (errnum != EISDIR && errnum != ENXIO)
        return false;
    box_fail(b, ENOENT, "this is no regular file");
    return true;
}

void files_get(struct call *c, const char *id, const char *path, const char *type) {
    struct get *g = box_new_in(c, id, path, sizeof *g, NULL);
    if (!g)
        return;
    g->type = type;
    g->box.on_error = no_file;
    ask_open(&g->box, on_typed_file);
}

/* ---- PUT ---- */

struct put {
    struct box box;
    files_done_fn *done;
    int fd; /* owned: without a name yet */
    uint32_t mode;
    uint64_t size;
};

static void free_put(struct box *b) {
    struct put *p = (struct put *)b;
    fd_close(&p->fd);
}

static void on_placed(struct box *b, struct wire_in *in) {
    struct put *p = (struct put *)b;
    bool replaced = wire_get_u32(in);
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    if (p->done) {
        p->done(b->call, b->path);
        return;
    }
    jw_object(&j);
    jw_key_str(&j, "path", b->path);
    jw_key_uint(&j, "size_bytes", p->size);
    jw_object_end(&j);
    call_json(b->call, replaced ? 200 : 201, &json);
}

static void put_whole(struct http_req *r) {
    struct call *c = http_user(r);
    struct put *p = c->state;
    struct wire_out o;
    wire_begin(&o, WIRE_I_PLACE);
    wire_put_str(&o, p->box.path);
    wire_put_u32(&o, p->mode);
    wire_put_u64(&o, 0);
    wire_put_fd(&o, p->fd);
    box_ask(&p->box, &o, on_placed);
    fd_close(&p->fd);
}

static void put_piece(struct http_req *r, const char *data, size_t len) {
    struct call *c = http_user(r);
    struct put *p = c->state;
    const struct live_piece piece = {data, len, p->size};
    p->size += len;
    if (!box_write(&p->box, p->fd, &piece, "the sandbox's disk has no room for all of it"))
        fd_close(&p->fd);
}

static void on_temp(struct box *b, struct wire_in *in) {
    struct put *p = (struct put *)b;
    p->fd = wire_take_fd(in);
    if (p->fd < 0)
        box_fail(b, EPROTO, "init made no file");
    else
        http_proceed(b->call->req);
}

void files_put(struct call *c, const char *id, const char *path, files_done_fn *done) {
    http_take_stream(c->req, put_piece, put_whole);
    struct put *p = box_new_in(c, id, path, sizeof *p, free_put);
    struct wire_out o;
    if (!p)
        return;
    p->fd = -1;
    p->mode = 0644;
    p->done = done;
    p->box.writes = true;
    p->box.on_gone = free_put;
    /* In a dialect the word has no meaning, and is passed over as all of the query is. */
    const char *mode = c->route->doc.query ? http_query(c->req, "mode") : NULL;
    if (!box_mode(&p->box, mode, &p->mode))
        return;
    struct live *l = box_live(&p->box);
    if (!*p->box.path) {
        box_bad_path(&p->box, "the workspace itself is a directory");
    } else if (l && http_body_length(c->req) > live_room(l)) {
        box_disk_full(&p->box, "this is more than the sandbox's disk has left");
    } else if (l && box_fits(&p->box, http_body_length(c->req))) {
        http_hold(c->req);
        wire_begin(&o, WIRE_I_TEMP);
        box_ask(&p->box, &o, on_temp);
    }
}

/* Who sends a part of a file, or a condition, would lose what is there to a plain PUT. */
static const char *not_taken(const struct call *c) {
    static const char *const names[] = {"Content-Range", "If-Match", "If-None-Match",
                                        "If-Unmodified-Since"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (http_header(c->req, names[i]))
            return names[i];
    return NULL;
}

static void do_sandbox_file_put(struct call *c) {
    const char *header = not_taken(c);
    if (header) {
        struct problem p = {.status = 400,
                            .code = "bad_header",
                            .remediation = "leave it out, and send the whole file"};
        snprintf(p.text, sizeof p.text,
                 "PUT takes no %s: it replaces the whole file, whatever it is now", header);
        call_problem(c, &p);
        return;
    }
    files_put(c, c->params[0], c->params[1], NULL);
}

/* ---- DELETE ---- */

static void on_removed(struct box *b, struct wire_in *in) {
    (void)in;
    http_reply(b->call->req, 204, NULL, "", 0);
}

static void ask_remove(struct box *b, bool recursive) {
    struct wire_out o;
    wire_begin(&o, WIRE_I_REMOVE);
    wire_put_str(&o, b->path);
    wire_put_u32(&o, recursive);
    box_ask(b, &o, on_removed);
}

/* A directory that takes the file's place meanwhile goes only if it is empty. */
static void on_kind(struct box *b, struct wire_in *in) {
    size_t len;
    const uint8_t *at = wire_get_bytes(in, &len);
    struct entry f;
    if (!at || !entry_get(&at, at + len, &f))
        box_fail(b, EPROTO, "the record is malformed");
    else if (f.type == ENTRY_DIRECTORY)
        box_fail(b, ENOENT, "this is a directory");
    else
        ask_remove(b, false);
}

static void ask_stat(struct box *b, box_fn *then) {
    struct wire_out o;
    wire_begin(&o, WIRE_I_STAT);
    wire_put_str(&o, b->path);
    box_ask(b, &o, then);
}

void files_remove(struct call *c, const char *id, const char *path) {
    struct box *b = box_new_in(c, id, path, sizeof *b, NULL);
    if (b)
        ask_stat(b, on_kind);
}

static void do_sandbox_file_delete(struct call *c) {
    struct box *b = box_new(c, sizeof *b, NULL);
    bool recursive = false;
    if (!b || !box_query_bool(b, "recursive", &recursive))
        return;
    if (!*b->path) {
        box_bad_path(b, "the workspace itself stays");
        return;
    }
    ask_remove(b, recursive);
}

/* ---- POST ---- */

static const char *const op_words[] = {"mkdir", "move", "chmod", NULL};
static const struct field op_fields[] = {
    {.name = "op", .type = FIELD_STRING, .flags = FIELD_REQUIRED, .words = op_words},
    {.name = "to",
     .type = FIELD_STRING,
     .flags = FIELD_NULLABLE,
     .help = "of move: where to, from the workspace; nothing may be there"},
    {.name = "mode",
     .type = FIELD_STRING,
     .flags = FIELD_NULLABLE,
     .help = "of mkdir and chmod: octal, \"0755\""},
};
static const struct schema sandbox_file_schema = {"FileOperation", op_fields, 3, false};

static void on_entry(struct box *b, struct wire_in *in) {
    size_t len;
    const uint8_t *at = wire_get_bytes(in, &len);
    struct entry f;
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    if (!at || !entry_get(&at, at + len, &f)) {
        box_fail(b, EPROTO, "the record is malformed");
        return;
    }
    put_entry(&j, &f);
    call_json(b->call, 200, &json);
}

/* The path is that of the result by now. */
static void on_operated(struct box *b, struct wire_in *in) {
    (void)in;
    ask_stat(b, on_entry);
}

static bool lacks(struct box *b, const char *op, const char *field) {
    struct problem p = {.status = 422, .code = "bad_value", .remediation = "add the field"};
    snprintf(p.text, sizeof p.text, "%s needs the field \"%s\"", op, field);
    call_problem(b->call, &p);
    return false;
}

static bool begin_move(struct box *b, struct wire_out *o) {
    const char *to = field_str(b->call->body, "to", NULL);
    if (!to || !*to)
        return lacks(b, "move", "to");
    wire_begin(o, WIRE_I_MOVE);
    wire_put_str(o, b->path);
    free(b->path);
    b->path = xstrdup(to);
    const char *wrong = paths_normal(b->path);
    if (!wrong && strlen(b->path) > ENTRY_PATH_MAX)
        wrong = "File paths have at most 4095 bytes.";
    if (wrong) {
        box_bad_path(b, wrong);
        return false;
    }
    wire_put_str(o, b->path);
    return true;
}

static bool begin_operation(struct box *b, struct wire_out *o) {
    const char *op = field_str(b->call->body, "op", "");
    const char *text = field_str(b->call->body, "mode", NULL);
    uint32_t mode = 0755;
    if (strcmp(op, "move") == 0)
        return begin_move(b, o);
    if (!box_mode(b, text, &mode))
        return false;
    bool makes = strcmp(op, "mkdir") == 0;
    if (!makes && !text)
        return lacks(b, "chmod", "mode");
    wire_begin(o, makes ? WIRE_I_MKDIR : WIRE_I_CHMOD);
    wire_put_str(o, b->path);
    wire_put_u32(o, mode);
    if (makes)
        wire_put_u32(o, true);
    return true;
}

static void do_sandbox_file_post(struct call *c) {
    struct box *b = box_new(c, sizeof *b, NULL);
    struct wire_out o;
    if (!b)
        return;
    if (!*b->path)
        box_bad_path(b, "the workspace itself stays as it is");
    else if (begin_operation(b, &o))
        box_ask(b, &o, on_operated);
}

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"GET", "/v1/sandboxes/{id}/files/{path...}", "Download a file of a sandbox, or list a directory "
      "(recursive, limit, after)", "sandboxes", NULL, NULL, 200, "its bytes, or its entries",
      "application/octet-stream", &sandbox_file_query}, do_sandbox_file},
    {{"PUT", "/v1/sandboxes/{id}/files/{path...}", "Upload a file to a sandbox (mode)", "sandboxes",
      NULL, "application/octet-stream", 201, "its path and size; 200 when it replaced one",
      JSON_TYPE, &sandbox_file_put_query, .also = 200}, do_sandbox_file_put},
    {{"DELETE", "/v1/sandboxes/{id}/files/{path...}", "Delete a file or directory of a sandbox "
      "(recursive)", "sandboxes", NULL, NULL, 204, "nothing", NULL,
      &sandbox_file_delete_query}, do_sandbox_file_delete},
    {{"POST", "/v1/sandboxes/{id}/files/{path...}", "Make a directory, move or chmod in a sandbox",
      "sandboxes", &sandbox_file_schema, NULL, 200, "the entry", JSON_TYPE}, do_sandbox_file_post,
     .body_max = 64 * 1024},
};
/* clang-format on */
const struct route_table sandbox_file_routes = ROUTE_TABLE(routes);
