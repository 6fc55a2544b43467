/* The tools read_file, write_file and list_files: the files of a sandbox's workspace. */

#include "api/files/file_type.h"
#include "api/files/paths.h"
#include "api/mcp/place.h"
#include "api/mcp/reading.h"
#include "api/mcp/tools.h"
#include "base/base64.h"
#include "base/fd.h"
#include "base/text.h"
#include "http/fields.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MOST  1000u
#define LIST_CHARS 25000u /* of the lines: the same as JSON has more */

/* Where its bytes can be had. */
static void link_to(const struct file_job *f, uint64_t size) {
    AUTO_BUF uri = BUF_INIT;
    buf_addf(&uri, "cloche://sandbox/%s/", place_name(f->call));
    paths_encode(f->path, &uri);
    mcp_link(f->call, &(struct mcp_link){.uri = uri.data,
                                         .name = f->path,
                                         .mime = file_type(f->path),
                                         .size = (int64_t)size});
}

/* ---- read_file ---- */

static const struct field read_fields[] = {
    {.name = "path",
     .type = FIELD_STRING,
     .flags = FIELD_REQUIRED,
     .help = "from /workspace, or absolute within it"},
    FIELD_OF_SANDBOX,
    {.name = "offset",
     .type = FIELD_INT,
     .flags = FIELD_MIN,
     .min = 1,
     .fallback = "1",
     .help = "the first line"},
    {.name = "limit",
     .type = FIELD_INT,
     .flags = FIELD_MIN | FIELD_MAX,
     .min = 1,
     .max = WINDOW_LINES_MAX,
     .fallback = "2000",
     .help = "lines"},
};
static const struct schema read_schema = {SCHEMA("ReadFile", read_fields)};

static void put_lines(struct mcp_call *c, const struct window *w) {
    AUTO_BUF text = BUF_INIT;
    buf_add(&text, w->text.data, w->text.len);
    if (w->size == 0)
        buf_adds(&text, "[the file is empty]");
    else if (w->last < w->first)
        buf_addf(&text, "[the file has %" PRIu64 " lines]", w->last);
    else if (w->more)
        buf_addf(&text, "[the file goes on: offset %" PRIu64 "]", w->last + 1);
    mcp_text(c, text.data, text.len);
}

static void read_on_read(struct reading *r, const struct window *w) {
    struct mcp_call *c = r->f.call;
    if (w->kind == WINDOW_TEXT) {
        put_lines(c, w);
    } else if (w->kind == WINDOW_IMAGE) {
        mcp_image(c, w->mime, w->text.data, w->text.len);
    } else {
        mcp_textf(c, "[%s with %" PRIu64 " bytes, which is no text: open it with run_python]",
                  w->mime ? "an image that is too large to show," : "a file", w->size);
        link_to(&r->f, w->size);
    }
    mcp_answer(c);
}

static void read_file_at(struct mcp_call *c, struct live *l) {
    const json_t *args = mcp_args(c);
    const struct window how = {.first = (uint64_t)field_int(args, "offset", 1),
                               .lines = (uint64_t)field_int(args, "limit", WINDOW_LINES)};
    reading_begin(c, l, field_str(args, "path", ""), &how, read_on_read);
}

static void read_file_call(struct mcp_call *c) {
    place_use(c, read_file_at);
}

const struct mcp_tool read_file_tool = {
    .name = "read_file",
    .title = "Read a file",
    .description = "Reads a file of a sandbox: of a text its lines with their numbers (offset and "
                   "limit choose which), a picture as an image, of anything else a link.",
    .takes = &read_schema,
    .hints = MCP_READ_ONLY | MCP_CLOSED,
    .sets = MCP_CORE | MCP_FILES,
    .call = read_file_call,
};

/* ---- write_file ---- */

static const char *const encodings[] = {"utf-8", "base64", NULL};
static const struct field write_fields[] = {
    {.name = "path",
     .type = FIELD_STRING,
     .flags = FIELD_REQUIRED,
     .help = "from /workspace, or absolute within it; directories on the way are made"},
    {.name = "content", .type = FIELD_STRING, .flags = FIELD_REQUIRED | FIELD_LONG},
    {.name = "encoding",
     .type = FIELD_STRING,
     .words = encodings,
     .fallback = "\"utf-8\"",
     .help = "of the content: base64 for bytes"},
    FIELD_OF_SANDBOX,
};
static const struct schema write_schema = {SCHEMA("WriteFile", write_fields)};

struct writing {
    struct file_job f;
    struct buf bytes; /* owned */
};

static void writing_done(struct file_job *f) {
    struct writing *w = (struct writing *)f;
    buf_done(&w->bytes);
}

static void write_on_place(struct file_job *f, struct file_answer *a) {
    const struct writing *w = (const struct writing *)f;
    AUTO_BUF path = BUF_INIT;
    text_add_plain(&path, f->path, strlen(f->path));
    mcp_textf(f->call, "%s /workspace/%s: %zu bytes", a->replaced ? "replaced" : "wrote", path.data,
              w->bytes.len);
    mcp_answer(f->call);
}

static void write_on_temp(struct file_job *f, struct file_answer *a) {
    const struct writing *w = (const struct writing *)f;
    const struct file_piece piece = {w->bytes.data, w->bytes.len, 0};
    struct live *l = file_job_live(f);
    struct err e;
    if (!l)
        return;
    if (files_write(live_sandbox(l), a->fd, &piece, &e) == 0)
        file_job_ask(
            f,
            &(struct file_question){.op = FILE_PLACE, .path = f->path, .mode = 0644, .fd = a->fd},
            write_on_place);
    else if (*e.kind)
        place_fail(f->call, &e);
    else
        file_job_fail(f, e.code, "the sandbox's disk has no room for all of it");
}

/* False when the call has its answer. */
static bool take_content(struct writing *w) {
    const json_t *args = mcp_args(w->f.call), *content = json_object_get(args, "content");
    const char *text = json_string_value(content);
    size_t len = json_string_length(content);
    if (strcmp(field_str(args, "encoding", "utf-8"), "base64") != 0)
        buf_add(&w->bytes, text, len);
    else if (!base64_decode(&w->bytes, text, len)) {
        mcp_answer_errorf(w->f.call, "content is not base64: only A-Z a-z 0-9 + / may be in it, "
                                     "and = at its end");
        return false;
    }
    return true;
}

static void write_file_at(struct mcp_call *c, struct live *l) {
    struct err e;
    struct writing *w =
        file_job_new(c, l, field_str(mcp_args(c), "path", ""), sizeof *w, writing_done);
    if (!w)
        return;
    w->f.writes = true;
    w->bytes = (struct buf)BUF_INIT;
    if (!*w->f.path)
        mcp_answer_errorf(c, "path is the workspace itself: name a file in it");
    else if (!take_content(w))
        return;
    else if (w->bytes.len > files_room(live_sandbox(l)))
        file_job_fail(&w->f, ENOSPC, "this is more than the sandbox's disk has left");
    else if (files_fit(live_sandbox(l), w->bytes.len, &e) < 0)
        place_fail(c, &e);
    else
        file_job_ask(&w->f, &(struct file_question){.op = FILE_TEMP}, write_on_temp);
}

static void write_file_call(struct mcp_call *c) {
    place_use(c, write_file_at);
}

const struct mcp_tool write_file_tool = {
    .name = "write_file",
    .title = "Write a file",
    .description = "Writes a file of a sandbox; one that is there is replaced as a whole.",
    .takes = &write_schema,
    .hints = MCP_DESTRUCTIVE | MCP_IDEMPOTENT | MCP_CLOSED,
    .sets = MCP_CORE | MCP_FILES,
    .call = write_file_call,
};

/* ---- list_files ---- */

static const struct field list_fields[] = {
    {.name = "path",
     .type = FIELD_STRING,
     .fallback = "\"\"",
     .help = "a directory, from /workspace; that itself unless given"},
    {.name = "recursive", .type = FIELD_BOOL, .fallback = "false", .help = "all below it"},
    FIELD_OF_SANDBOX,
};
static const struct schema list_schema = {SCHEMA("ListFiles", list_fields)};

static const char *const entry_words[] = {[ENTRY_FILE] = "file",
                                          [ENTRY_DIRECTORY] = "directory",
                                          [ENTRY_SYMLINK] = "symlink",
                                          [ENTRY_OTHER] = "other"};

static const struct field entry_fields[] = {
    HAS("path", FIELD_STRING),
    HAS("type", FIELD_STRING, WORDS("file", "directory", "symlink", "other")),
    HAS("size", FIELD_INT, .help = "bytes"),
    HAS("modified", FIELD_STRING, .help = "UTC"),
};
static const struct schema entry_schema = {SCHEMA("ListedFile", entry_fields)};
static const struct field listed_fields[] = {
    HAS("files", LIST_OF(entry_schema)),
    HAS("more", FIELD_BOOL, .help = "there are more than these"),
};
static const struct schema listed_schema = {SCHEMA("ListedFiles", listed_fields)};

static void add_time(const struct entry *e, struct buf *to) {
    struct tm tm;
    char text[40] = "";
    if (text_date((double)e->mtime_ns / 1e9, &tm))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M", &tm);
    buf_adds(to, text);
}

static void list_one(const struct entry *e, struct jw *j, struct buf *lines) {
    AUTO_BUF time = BUF_INIT;
    add_time(e, &time);
    jw_object(j);
    jw_key_str(j, "path", e->path);
    jw_key_str(j, "type", entry_words[e->type]);
    jw_key_uint(j, "size", e->size);
    jw_key_str(j, "modified", time.data);
    jw_object_end(j);
    text_add_plain(lines, e->path, strlen(e->path));
    if (e->type == ENTRY_DIRECTORY)
        buf_adds(lines, "/");
    else if (e->type == ENTRY_SYMLINK)
        buf_adds(lines, " -> "), text_add_plain(lines, e->target, strlen(e->target));
    else
        buf_addf(lines, "  %" PRIu64 " bytes", e->size);
    buf_addf(lines, "  %s\n", time.data);
}

static void list_answer(const struct file_job *f, struct file_page *page) {
    AUTO_BUF json = BUF_INIT, lines = BUF_INIT;
    struct jw j = JW_INIT(&json);
    struct entry e;
    jw_object(&j);
    jw_key(&j, "files");
    jw_array(&j);
    while (lines.len < LIST_CHARS && file_page_next(page, &e) > 0)
        list_one(&e, &j, &lines);
    bool more = page->cut || !file_page_is_read(page);
    jw_array_end(&j);
    jw_key_bool(&j, "more", more);
    jw_object_end(&j);
    if (lines.len == 0)
        buf_adds(&lines, "[no files]\n");
    if (more)
        buf_adds(&lines, "[there are more: list a directory of it, or use run_shell]\n");
    mcp_text(f->call, lines.data, lines.len - 1);
    mcp_structured(f->call, json.data, json.len);
    mcp_answer(f->call);
}

static void list_on_list(struct file_job *f, struct file_answer *a) {
    list_answer(f, &a->page);
}

static void list_on_stat(struct file_job *f, struct file_answer *a) {
    struct file_page page = FILE_PAGE_INIT;
    file_page_of(&page, &a->entry);
    list_answer(f, &page);
    file_page_done(&page);
}

/* A file is listed alone. */
static bool list_on_error(struct file_job *f, int errnum) {
    if (errnum != ENOTDIR)
        return false;
    f->on_error = NULL;
    file_job_ask(f, &(struct file_question){.op = FILE_STAT, .path = f->path}, list_on_stat);
    return true;
}

static void list_files_at(struct mcp_call *c, struct live *l) {
    struct file_job *f = file_job_new(c, l, field_str(mcp_args(c), "path", ""), sizeof *f, NULL);
    if (!f)
        return;
    f->on_error = list_on_error;
    file_job_ask(f,
                 &(struct file_question){.op = FILE_LIST,
                                         .path = f->path,
                                         .most = LIST_MOST,
                                         .recursive = field_bool(mcp_args(c), "recursive", false)},
                 list_on_list);
}

static void list_files_call(struct mcp_call *c) {
    place_use(c, list_files_at);
}

const struct mcp_tool list_files_tool = {
    .name = "list_files",
    .title = "List files",
    .description = "Lists a directory of a sandbox: one line for each file.",
    .takes = &list_schema,
    .gives = &listed_schema,
    .hints = MCP_READ_ONLY | MCP_CLOSED,
    .sets = MCP_CORE | MCP_FILES,
    .call = list_files_call,
};
