/* The files of a live sandbox: /v1/sandboxes/{id}/files/{path} and …/archive/{path}. */

#include "api/files/sandbox_files.h"
#include "api/core/pages.h"
#include "api/files/archive.h"
#include "api/files/download.h"
#include "api/files/paths.h"
#include "api/files/unpack.h"
#include "api/native/native.h"
#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MOST    10000
#define LIST_DEFAULT 1000

/* ---- entries as JSON ---- */

static const char *const type_names[] = {[ENTRY_FILE] = "file",
                                         [ENTRY_DIRECTORY] = "directory",
                                         [ENTRY_SYMLINK] = "symlink",
                                         [ENTRY_OTHER] = "other"};

static void put_entry(struct jw *j, const struct entry *f) {
    char mode[8];
    snprintf(mode, sizeof mode, "%04o", f->mode);
    jw_object(j);
    jw_key_str(j, "name", paths_name(f->path));
    jw_key_str(j, "path", f->path);
    if (!json_is_utf8(f->path, strlen(f->path))) {
        AUTO_BUF url = BUF_INIT;
        paths_encode(f->path, &url);
        jw_key_str(j, "path_encoded", url.data);
    }
    jw_key_str(j, "type", type_names[f->type]);
    jw_key_uint(j, "size_bytes", f->size);
    jw_key_str(j, "mode", mode);
    jw_key_real(j, "modified", (double)f->mtime_ns / 1e9);
    if (f->type == ENTRY_SYMLINK)
        jw_key_str(j, "target", f->target);
    jw_object_end(j);
}

static const struct field entry_fields[] = {
    HAS("name", FIELD_STRING),
    HAS("path", FIELD_STRING),
    MAY_HAVE("path_encoded", FIELD_STRING, .help = "for URLs, where the path is not UTF-8"),
    HAS("type", FIELD_STRING, WORDS("file", "directory", "symlink", "other")),
    HAS("size_bytes", FIELD_INT),
    HAS("mode", FIELD_STRING, .help = "octal, as 0644"),
    HAS("modified", FIELD_REAL, .help = "unix time"),
    MAY_HAVE("target", FIELD_STRING, .help = "of a symbolic link"),
};
static const struct schema entry_schema = {SCHEMA("FileEntry", entry_fields)};

/* ---- GET ---- */

static void file_on_open(struct file_call *fc, struct file_answer *a) {
    files_send(fc, a, NULL);
}

/* A cursor is the last page's last path, in hexadecimal: names hold any byte. */
static void put_cursor(struct jw *j, const char *path) {
    static const char digits[] = "0123456789abcdef";
    AUTO_BUF hex = BUF_INIT;
    for (const char *c = path; *c; c++) {
        buf_addc(&hex, digits[(unsigned char)*c >> 4]);
        buf_addc(&hex, digits[*c & 15]);
    }
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

/* A page may have a megabyte and its JSON twelve: so the JSON is written as the client takes it. */
struct listing {
    struct http_source source;
    struct file_page page;
    char *path;       /* owned: the directory */
    const char *last; /* borrowed from the page; NULL: nothing is written yet */
    bool comma;
};

static void list_free(struct http_source *s) {
    struct listing *l = (struct listing *)s;
    file_page_done(&l->page);
    free(l->path);
    free(l);
}

static bool list_more(struct http_source *s, struct buf *to) {
    struct listing *l = (struct listing *)s;
    struct jw j = {.to = to, .comma = l->comma};
    struct entry f;
    if (!l->last) {
        jw_object(&j);
        jw_key_str(&j, "path", l->path);
        jw_key(&j, "entries");
        jw_array(&j);
        l->last = "";
    }
    while (to->len < HTTP_SLICE && file_page_next(&l->page, &f) > 0) {
        put_entry(&j, &f);
        l->last = f.path;
    }
    l->comma = j.comma;
    if (!file_page_is_read(&l->page))
        return true;
    jw_array_end(&j);
    if (l->page.cut)
        put_cursor(&j, l->last);
    else
        jw_key_null(&j, "next");
    jw_object_end(&j);
    return false;
}

static void file_on_list(struct file_call *fc, struct file_answer *a) {
    struct listing *l = xcalloc(1, sizeof *l);
    *l = (struct listing){.source = {.more = list_more, .free = list_free},
                          .page = FILE_PAGE_INIT,
                          .path = xstrdup(fc->path)};
    file_page_move(&l->page, &a->page);
    l->source.holds = l->page.records.cap;
    http_reply_from(fc->call->req, 200, "application/json", &l->source);
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

static void ask_list(struct file_call *fc) {
    struct file_question q = {.op = FILE_LIST, .path = fc->path, .most = LIST_DEFAULT};
    const char *cursor = call_query(fc->call, "after");
    char after[ENTRY_PATH_MAX + 1] = "";
    if (!file_call_query_bool(fc, "recursive", &q.recursive) ||
        !file_call_query_u32(fc, "limit", 1, LIST_MOST, &q.most))
        return;
    if (cursor && !read_cursor(cursor, after)) {
        file_call_bad_value(fc, "after", "what an earlier page has as next");
        return;
    }
    q.after = after;
    file_call_ask(fc, &q, file_on_list);
}

static bool list_instead(struct file_call *fc, int errnum) {
    if (errnum != EISDIR)
        return false;
    fc->on_error = NULL;
    ask_list(fc);
    return true;
}

static void do_sandbox_file(struct call *c) {
    struct file_call *fc = file_call_new(c, sizeof *fc, NULL);
    if (!fc)
        return;
    if (!*fc->path) {
        ask_list(fc);
        return;
    }
    fc->on_error = list_instead;
    file_call_ask(fc, &(struct file_question){.op = FILE_READ, .path = fc->path}, file_on_open);
}

/* ---- PUT ---- */

static void put_made(struct call *c, const struct files_made *m) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_str(&j, "path", m->path);
    jw_key_uint(&j, "size_bytes", m->bytes);
    jw_object_end(&j);
    call_json(c, m->replaced ? 200 : 201, &json);
}

/* A PUT with a part of a file, or with a condition, is refused: taken as a plain PUT it would
 * replace the whole file. */
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
    files_put(c, c->params[0], c->params[1], call_query(c, "mode"), put_made);
}

/* ---- DELETE ---- */

static void do_sandbox_file_delete(struct call *c) {
    struct file_call *fc = file_call_new(c, sizeof *fc, NULL);
    if (!fc)
        return;
    struct file_question q = {.op = FILE_REMOVE, .path = fc->path};
    if (!file_call_query_bool(fc, "recursive", &q.recursive))
        return;
    if (*fc->path)
        file_call_ask(fc, &q, files_removed);
    else
        file_call_bad_path(fc, "the workspace itself stays");
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

static void op_on_stat(struct file_call *fc, struct file_answer *a) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    put_entry(&j, &a->entry);
    call_json(fc->call, 200, &json);
}

/* fc->path names the result by now. */
static void op_on_done(struct file_call *fc, struct file_answer *a) {
    (void)a;
    file_call_ask(fc, &(struct file_question){.op = FILE_STAT, .path = fc->path}, op_on_stat);
}

static void lacks(const struct file_call *fc, const char *op, const char *field) {
    struct problem p = {.status = 422, .code = "bad_value", .remediation = "add the field"};
    snprintf(p.text, sizeof p.text, "%s needs the field \"%s\"", op, field);
    call_problem(fc->call, &p);
}

static void ask_move(struct file_call *fc) {
    const char *to = field_str(fc->call->body, "to", NULL);
    AUTO_FREE char *from = xstrdup(fc->path);
    if (!to || !*to)
        lacks(fc, "move", "to");
    else if (file_call_set_path(fc, to))
        file_call_ask(fc, &(struct file_question){.op = FILE_MOVE, .path = from, .to = fc->path},
                      op_on_done);
}

static void ask_mkdir(struct file_call *fc) {
    struct file_question q = {.op = FILE_MKDIR, .path = fc->path, .mode = 0755};
    if (file_call_mode(fc, field_str(fc->call->body, "mode", NULL), &q.mode))
        file_call_ask(fc, &q, op_on_done);
}

static void ask_chmod(struct file_call *fc) {
    struct file_question q = {.op = FILE_CHMOD, .path = fc->path};
    const char *mode = field_str(fc->call->body, "mode", NULL);
    if (!mode)
        lacks(fc, "chmod", "mode");
    else if (file_call_mode(fc, mode, &q.mode))
        file_call_ask(fc, &q, op_on_done);
}

/* In the order of op_words. */
static void (*const ops[])(struct file_call *fc) = {ask_mkdir, ask_move, ask_chmod};

static void do_sandbox_file_post(struct call *c) {
    struct file_call *fc = file_call_new(c, sizeof *fc, NULL);
    const char *op = field_str(c->body, "op", "");
    if (!fc)
        return;
    if (!*fc->path) {
        file_call_bad_path(fc, "the workspace itself stays as it is");
        return;
    }
    for (size_t i = 0; op_words[i]; i++)
        if (strcmp(op, op_words[i]) == 0)
            ops[i](fc);
}

/* ---- archives ---- */

static void do_sandbox_archive(struct call *c) {
    files_archive(c, c->params[0], c->params[1],
                  &(struct archive_form){.type = "application/gzip"});
}

static void put_unpacked(struct call *c, const struct files_made *m) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_uint(&j, "files", m->files);
    jw_key_uint(&j, "size_bytes", m->bytes);
    jw_object_end(&j);
    call_json(c, 200, &json);
}

static void do_sandbox_archive_put(struct call *c) {
    files_unpack(c, c->params[0], c->params[1], put_unpacked);
}

static const struct field page_fields[] = {
    HAS("path", FIELD_STRING),
    HAS("entries", LIST_OF(entry_schema)),
    PAGE_NEXT,
};
static const struct schema page_schema = {SCHEMA("DirectoryPage", page_fields)};
static const struct api_reply or_list[] = {
    {200, "the entries of a directory", JSON_TYPE, &page_schema}, DOWNLOAD_REPLIES};
static const struct field made_fields[] = {
    HAS("path", FIELD_STRING),
    HAS("size_bytes", FIELD_INT),
};
static const struct schema made_schema = {SCHEMA("FileMade", made_fields)};
static const struct field unpacked_fields[] = {
    HAS("files", FIELD_INT),
    HAS("size_bytes", FIELD_INT),
};
static const struct schema unpacked_schema = {SCHEMA("Unpacked", unpacked_fields)};

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"GET", "/v1/sandboxes/{id}/files/{path...}", "Download a file of a sandbox, or list a directory", "sandboxes", NULL, NULL, 200, "its bytes, or its entries",
      "application/octet-stream", &sandbox_file_query, .more = or_list,
      .errors = ERRORS_OF_PATH ERRORS_OF_DOWNLOAD}, do_sandbox_file},
    {{"PUT", "/v1/sandboxes/{id}/files/{path...}", "Upload a file to a sandbox", "sandboxes",
      NULL, "application/octet-stream", 201, "its path and size; 200 when it replaced one",
      JSON_TYPE, &sandbox_file_put_query, .also = 200, .gives = &made_schema,
      .errors = ERRORS_OF_PATH "bad_header"}, do_sandbox_file_put},
    {{"DELETE", "/v1/sandboxes/{id}/files/{path...}", "Delete a file or directory of a sandbox", "sandboxes", NULL, NULL, 204, "nothing", NULL,
      &sandbox_file_delete_query, .errors = ERRORS_OF_PATH "not_empty"}, do_sandbox_file_delete},
    {{"POST", "/v1/sandboxes/{id}/files/{path...}", "Make a directory, move or chmod in a sandbox",
      "sandboxes", &sandbox_file_schema, NULL, 200, "the entry", JSON_TYPE, .gives = &entry_schema,
      .errors = ERRORS_OF_PATH "not_empty"}, do_sandbox_file_post,
     .body_max = 64 * 1024},
    {{"GET", "/v1/sandboxes/{id}/archive/{path...}", "Download a directory of a sandbox as tar.gz",
      "sandboxes", NULL, NULL, 200, "a tar.gz", "application/gzip",
      .errors = ERRORS_OF_PATH "too_many_archives"}, do_sandbox_archive},
    {{"PUT", "/v1/sandboxes/{id}/archive/{path...}", "Unpack a tar.gz into a directory of a sandbox",
      "sandboxes", NULL, "application/gzip", 200, "how much it was", JSON_TYPE, .gives = &unpacked_schema,
      .errors = ERRORS_OF_PATH "bad_archive not_empty too_many_archives 507:disk_full"},
     do_sandbox_archive_put},
};
/* clang-format on */
const struct route_table sandbox_file_routes = ROUTE_TABLE(routes);
