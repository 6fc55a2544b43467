/* Sandbox Runtime: files out of a session, whole (download, preview) or in pieces as JSON
 * (readfile). A piece of text ends between two characters; what is cut off comes with the next. */

#include "api/dialects/runtime/runtime.h"
#include "api/files/download.h"
#include "api/files/paths.h"
#include "api/files/sandbox_files.h"
#include "base/base64.h"
#include "base/num.h"

#include <errno.h>
#include <iconv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE     4096
#define ASKED_MAX (4u << 20)
#define PIECE_MAX (128u << 10) /* it is decoded in one go, while all others wait */
#define LONGEST   4            /* bytes of a character */

/* ---- whole ---- */

static const char *extension(const char *path) {
    const char *dot = strrchr(paths_name(path), '.');
    return dot ? dot + 1 : "";
}

static void open_file(struct file_call *fc, file_call_fn *then) {
    if (*fc->path)
        file_call_ask(fc, &(struct file_question){.op = FILE_READ, .path = fc->path}, then);
    else
        runtime_error(fc->call, 400, "not_a_file", "Not a file");
}

static void download_on_open(struct file_call *fc, struct file_answer *a) {
    files_send(fc, a, NULL);
}

static void download(struct call *c, struct live *l) {
    struct file_call *fc = runtime_file_call(c, l, c->params[1], sizeof *fc, NULL);
    if (fc)
        open_file(fc, download_on_open);
}

static void do_runtime_download(struct call *c) {
    runtime_use(c, download);
}

static const struct {
    const char *extension, *type;
} shown[] = {
    {"html", "text/html; charset=utf-8"},
    {"txt", "text/plain; charset=utf-8"},
    {"md", "text/markdown; charset=utf-8"},
    {"json", "application/json"},
    {"xml", "application/xml"},
    {"csv", "text/csv; charset=utf-8"},
    {"png", "image/png"},
    {"jpg", "image/jpeg"},
    {"jpeg", "image/jpeg"},
    {"gif", "image/gif"},
    {"bmp", "image/bmp"},
    {"webp", "image/webp"},
    {"svg", "image/svg+xml"},
    {"ico", "image/x-icon"},
};

static void preview_on_open(struct file_call *fc, struct file_answer *a) {
    const char *type = NULL;
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        if (strcasecmp(shown[i].extension, extension(fc->path)) == 0)
            type = shown[i].type;
    }
    files_send(fc, a, type);
}

static void preview(struct call *c, struct live *l) {
    struct file_call *fc = runtime_file_call(c, l, c->params[1], sizeof *fc, NULL);
    if (fc)
        open_file(fc, preview_on_open);
}

static void do_runtime_preview(struct call *c) {
    runtime_use(c, preview);
}

/* ---- in pieces ---- */

struct reading {
    struct file_call fc;
    uint64_t offset;
    uint32_t most;
    struct buf piece, before; /* from the offset on, and a few bytes up to it */
};

static void free_reading(struct file_call *fc) {
    struct reading *r = (struct reading *)fc;
    buf_done(&r->piece);
    buf_done(&r->before);
}

static bool is_text(const char *path) {
    static const char *const extensions[] = {
        "txt", "py",    "js",  "html", "css", "json", "xml", "csv", "md",   "sh", "bash",
        "zsh", "fish",  "c",   "cpp",  "h",   "java", "php", "rb",  "go",   "rs", "swift",
        "kt",  "scala", "sql", "yaml", "yml", "toml", "ini", "cfg", "conf", "log"};
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        if (strcasecmp(extensions[i], extension(path)) == 0)
            return true;
    }
    return false;
}

/* How many of the last bytes begin a character of UTF-8 that is not whole. */
static size_t cut_off(const char *text, size_t len) {
    for (size_t back = 1; back < LONGEST && back <= len; back++) {
        unsigned char c = (unsigned char)text[len - back];
        if ((c & 0xc0) == 0x80)
            continue;
        size_t needs = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        return needs > back ? back : 0;
    }
    return 0;
}

/* As GBK, with a mark for what is none; the bytes that were taken. */
static size_t decode_gbk(const char *text, size_t len, struct buf *to) {
    static const char mark[] = "\xef\xbf\xbd";
    iconv_t how = iconv_open("UTF-8", "GBK");
    char *at = (char *)(uintptr_t)text;
    size_t left = len;
    while (how != (iconv_t)-1 && left > 0) {
        char out[1024], *end = out;
        size_t room = sizeof out;
        size_t r = iconv(how, &at, &left, &end, &room);
        int why = errno;
        buf_add(to, out, sizeof out - room);
        if (r != (size_t)-1 || why == E2BIG)
            continue;
        if (why == EINVAL)
            break; /* half a character at the end */
        buf_adds(to, mark);
        at++, left--;
    }
    if (how == (iconv_t)-1)
        buf_add(to, text, len), left = 0; /* no such table here: marks, from the JSON writer */
    else
        iconv_close(how);
    return len - left;
}

/* How many of the first bytes end a character that began in the bytes before. */
static size_t end_of_last(const struct buf *piece, const struct buf *before) {
    size_t head = 0;
    if (!cut_off(before->data, before->len))
        return 0;
    while (head < piece->len && head < LONGEST - 1 &&
           ((unsigned char)piece->data[head] & 0xc0) == 0x80)
        head++;
    return head;
}

/* The piece as text, and how many bytes of it that are: all of them at the end of the file. Whoever
 * asks for a piece from the middle of a character gets a mark for its rest. */
static size_t decode(const struct buf *piece, const struct buf *before, bool eof, struct buf *to) {
    size_t len = piece->len - (eof ? 0 : cut_off(piece->data, piece->len));
    size_t head = end_of_last(piece, before);
    if (len >= head && len > 0 && json_is_utf8(piece->data + head, len - head)) {
        buf_add(to, piece->data, len);
        return len;
    }
    size_t taken = decode_gbk(piece->data, piece->len, to);
    if (taken < piece->len && (eof || taken == 0)) {
        buf_adds(to, "\xef\xbf\xbd");
        taken = piece->len;
    }
    return taken;
}

static void put_base64(struct jw *j, const struct buf *piece) {
    AUTO_BUF text = BUF_INIT;
    base64_encode(&text, piece->data, piece->len);
    jw_key(j, "content");
    jw_strn(j, text.data, text.len);
}

static void put_text(struct jw *j, const struct reading *r, bool eof, size_t *ret_taken) {
    AUTO_BUF text = BUF_INIT;
    *ret_taken = decode(&r->piece, &r->before, eof, &text);
    jw_key(j, "content");
    jw_strn(j, text.data, text.len);
}

static void put_piece(struct reading *r, uint64_t size) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    bool eof = r->offset + r->piece.len >= size;
    size_t taken = r->piece.len;
    jw_object(&j);
    if (r->offset >= size) {
        jw_key_str(&j, "content", "");
    } else if (is_text(r->fc.path)) {
        put_text(&j, r, eof, &taken);
        jw_key_bool(&j, "is_binary", false);
    } else {
        put_base64(&j, &r->piece);
        jw_key_bool(&j, "is_binary", true);
    }
    jw_key_uint(&j, "offset", r->offset + taken);
    jw_key_uint(&j, "size", size);
    jw_key_bool(&j, "is_eof", r->offset + taken >= size);
    jw_object_end(&j);
    runtime_reply(r->fc.call, &json);
}

static void read_at(int fd, uint64_t from, size_t len, struct buf *to) {
    ssize_t n = pread(fd, buf_reserve(to, len), len, (off_t)from);
    buf_commit(to, n < 0 ? 0 : (size_t)n);
}

/* To so many bytes, or to its first character if that has more. Of GBK so few bytes may look like
 * UTF-8: all stay. */
static void shorten(struct buf *piece, size_t most) {
    if (!json_is_utf8(piece->data, piece->len - cut_off(piece->data, piece->len)))
        return;
    while (most < piece->len && cut_off(piece->data, most) == most)
        most++;
    if (most < piece->len)
        piece->len = most;
}

static void readfile_on_open(struct file_call *fc, struct file_answer *a) {
    struct reading *r = (struct reading *)fc;
    struct stat st;
    if (fstat(a->fd, &st) < 0) {
        file_call_fail(fc, EIO, "init opened no file");
        return;
    }
    uint64_t size = (uint64_t)st.st_size;
    size_t want = r->most;
    if (want < LONGEST && is_text(fc->path))
        want = LONGEST; /* at least one character: otherwise a reader does not get on */
    if (r->offset < size) {
        size_t back = r->offset < LONGEST - 1 ? (size_t)r->offset : LONGEST - 1;
        read_at(a->fd, r->offset, want, &r->piece);
        shorten(&r->piece, r->most);
        read_at(a->fd, r->offset - back, back, &r->before);
    }
    put_piece(r, size);
}

/* A number of the query as FastAPI reads it, and within bounds; false when it is replied. */
static bool read_number(struct call *c, const char *name, uint64_t min, uint64_t max,
                        uint64_t *ret) {
    const char *text = call_query(c, name);
    const struct num_rule rule = {name, min, max};
    struct err e;
    if (!text)
        return true;
    size_t sign = *text == '-' || *text == '+';
    if (!text[sign] || strspn(text + sign, "0123456789") != strlen(text + sign)) {
        runtime_bad_query(c, name, "int_parsing",
                          "Input should be a valid integer, unable to parse string as an integer");
        return false;
    }
    if (num_u64(*text == '+' ? text + 1 : text, &rule, ret, &e) == 0)
        return true;
    runtime_error(c, 400, "bad_value", "%s is %.30s; it may be from %llu to %llu", name, text,
                  (unsigned long long)min, (unsigned long long)max);
    return false;
}

static void readfile(struct call *c, struct live *l) {
    uint64_t offset = 0, most = PIECE;
    if (!read_number(c, "offset", 0, INT64_MAX, &offset) ||
        !read_number(c, "buffer_size", 1, ASKED_MAX, &most))
        return;
    struct reading *r = runtime_file_call(c, l, c->params[1], sizeof *r, free_reading);
    if (!r)
        return;
    r->piece = r->before = (struct buf)BUF_INIT;
    r->offset = offset;
    r->most = (uint32_t)(most < PIECE_MAX ? most : PIECE_MAX);
    open_file(&r->fc, readfile_on_open);
}

static void do_runtime_readfile(struct call *c) {
    runtime_use(c, readfile);
}

static const struct field piece_fields[] = {
    HAS("content", FIELD_STRING, .help = "text, or base64"),
    MAY_HAVE("is_binary", FIELD_BOOL, .help = "unless it begins behind the end"),
    HAS("offset", FIELD_INT, .help = "where the next piece begins"),
    HAS("size", FIELD_INT, .help = "of the file"),
    HAS("is_eof", FIELD_BOOL),
};
RUNTIME_REPLY(piece_reply, "RuntimePiece", piece_fields);
static const struct field query_fields[] = {
    {.name = "offset", .type = FIELD_INT, .fallback = "0"},
    {.name = "buffer_size", .type = FIELD_INT},
};
static const struct schema piece_query = {"", query_fields, 2, true};

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"GET", "/workspace/se/download/{session_id}/{path...}", "Download a file of a session",
      "sandbox-runtime", NULL, NULL, 200, "its bytes", "*/*", .more = download_replies,
      .errors = ERRORS_OF_SESSION_FILE ERRORS_OF_DOWNLOAD}, do_runtime_download},
    {{"GET", "/workspace/se/files/preview/{session_id}/{path...}", "Show a file of a session",
      "sandbox-runtime", NULL, NULL, 200, "its bytes, with the type of their kind",
      "*/*", .more = download_replies, .errors = ERRORS_OF_SESSION_FILE ERRORS_OF_DOWNLOAD}, do_runtime_preview},
    {{"GET", "/workspace/se/readfile/{session_id}/{path...}", "Read a piece of a file", "sandbox-runtime", NULL, NULL, 200, "text, or base64", JSON_TYPE, &piece_query,
      .gives = &piece_reply, .errors = ERRORS_OF_SESSION_FILE "bad_fields"},
     do_runtime_readfile},
};
/* clang-format on */
const struct route_table runtime_read_routes = ROUTE_TABLE(routes);
