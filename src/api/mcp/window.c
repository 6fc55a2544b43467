/* See window.h. */

#include "api/mcp/window.h"

#include "base/base64.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK  8192u       /* bytes that tell a text from anything else */
#define PIECE (64u << 10) /* bytes of one read */
#define SLICE (1u << 20)

void window_done(struct window *w) {
    fd_close(&w->fd);
    buf_done(&w->text);
}

/* By its first bytes. */
static const char *image_type(const unsigned char *at, size_t len) {
    if (len >= 8 && memcmp(at, "\x89PNG\r\n\x1a\n", 8) == 0)
        return "image/png";
    if (len >= 3 && memcmp(at, "\xff\xd8\xff", 3) == 0)
        return "image/jpeg";
    if (len >= 6 && (memcmp(at, "GIF87a", 6) == 0 || memcmp(at, "GIF89a", 6) == 0))
        return "image/gif";
    if (len >= 12 && memcmp(at, "RIFF", 4) == 0 && memcmp(at + 8, "WEBP", 4) == 0)
        return "image/webp";
    return NULL;
}

/* A character may go on behind the bytes at hand. */
static bool is_text(const char *at, size_t len, bool is_all) {
    size_t end = len;
    for (size_t back = 1; !is_all && back <= 3 && back <= len; back++) {
        unsigned char c = (unsigned char)at[len - back];
        if (c >= 0xc0) {
            end = len - back;
            break;
        }
        if (c < 0x80)
            break;
    }
    return !memchr(at, '\0', end) && json_is_utf8(at, end);
}

static bool window_look(struct window *w) {
    char head[LOOK];
    struct stat st;
    ssize_t n = pread(w->fd, head, sizeof head, 0);
    if (n < 0 || fstat(w->fd, &st) < 0) {
        w->failed = true;
        return false;
    }
    w->size = (uint64_t)st.st_size;
    w->mime = image_type((const unsigned char *)head, (size_t)n);
    if (w->whole)
        w->kind = w->size <= WINDOW_WHOLE ? WINDOW_BYTES : WINDOW_LARGE;
    else if (w->mime && w->size <= WINDOW_WHOLE)
        w->kind = WINDOW_IMAGE;
    else if (w->mime || !is_text(head, (size_t)n, n < (ssize_t)sizeof head))
        w->kind = WINDOW_BINARY;
    else
        w->kind = WINDOW_TEXT;
    return w->kind != WINDOW_BINARY && w->kind != WINDOW_LARGE;
}

/* ---- whole ---- */

static bool read_whole(struct window *w) {
    char *to = buf_reserve(&w->text, PIECE);
    ssize_t n = pread(w->fd, to, PIECE, (off_t)w->at);
    w->failed = n < 0;
    if (n <= 0)
        return false;
    buf_commit(&w->text, (size_t)n);
    w->at += (uint64_t)n;
    return w->text.len <= WINDOW_WHOLE; /* it may have grown */
}

static void finish_whole(struct window *w) {
    if (w->text.len > WINDOW_WHOLE)
        w->kind = w->whole ? WINDOW_LARGE : WINDOW_BINARY;
    if (w->kind != WINDOW_IMAGE)
        return;
    struct buf bytes = w->text;
    w->text = (struct buf)BUF_INIT;
    base64_encode(&w->text, bytes.data, bytes.len);
    buf_done(&bytes);
}

/* ---- lines ---- */

static bool is_shown(const struct window *w) {
    return w->last >= w->first && w->last < w->first + w->lines;
}

/* Control characters would do something to a terminal. */
static void add_visible(struct buf *to, const char *at, size_t len) {
    for (const char *end = at + len; at < end; at++) {
        unsigned char c = (unsigned char)*at;
        if (c == '\r')
            continue;
        if ((c < ' ' && c != '\t') || c == 0x7f)
            buf_addf(to, "\\x%02x", c);
        else
            buf_addc(to, (char)c);
    }
}

/* Part of a line, or the rest of it. */
static void add_part(struct window *w, const char *at, size_t len) {
    if (!w->line_open) {
        w->last++;
        w->line_len = 0;
        w->line_open = true;
        if (is_shown(w))
            buf_addf(&w->text, "%6llu\t", (unsigned long long)w->last);
    }
    size_t room = w->line_len < WINDOW_LINE ? WINDOW_LINE - (size_t)w->line_len : 0;
    size_t n = len < room ? len : room;
    w->line_len += len;
    if (!is_shown(w))
        return;
    while (n < len && n > 0 && ((unsigned char)at[n] & 0xc0) == 0x80)
        n--;
    size_t from = w->text.len;
    add_visible(&w->text, at, n);
    w->chars += text_chars(w->text.data + from, w->text.len - from);
    w->cut |= n < len;
}

static void end_line(struct window *w) {
    w->line_open = false;
    if (!is_shown(w))
        return;
    if (w->line_len > WINDOW_LINE)
        buf_addf(&w->text, " [... %llu bytes more in this line]",
                 (unsigned long long)(w->line_len - WINDOW_LINE));
    buf_addc(&w->text, '\n');
    w->chars += 8;
}

static bool is_full(const struct window *w) {
    return !w->line_open && (w->last + 1 >= w->first + w->lines || w->chars >= WINDOW_CHARS);
}

/* False when the window is full. */
static bool add_lines(struct window *w, const char *at, size_t len) {
    for (const char *end = at + len; at < end;) {
        if (is_full(w)) {
            w->more = true;
            return false;
        }
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        add_part(w, at, (size_t)((newline ? newline : end) - at));
        if (newline)
            end_line(w);
        at = newline ? newline + 1 : end;
    }
    return true;
}

/* SECURITY: a file can be a hole of an exbibyte, which nobody reads to its end. It holds no end of
 * a line either. */
static void add_hole(struct window *w, uint64_t len) {
    static const char zeros[WINDOW_LINE + 1]; /* more than is shown */
    size_t n = len < sizeof zeros ? (size_t)len : sizeof zeros;
    add_part(w, zeros, n);
    w->line_len += len - n;
    w->at += len;
}

/* False when the window is full. */
static bool skip_hole(struct window *w) {
    off_t at = (off_t)w->at, data = lseek(w->fd, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) /* none comes any more */
        data = lseek(w->fd, 0, SEEK_END);
    if (data <= at)
        return true;
    w->more = is_full(w);
    if (!w->more)
        add_hole(w, (uint64_t)(data - at));
    return !w->more;
}

static bool read_lines(struct window *w) {
    char piece[PIECE];
    if (!skip_hole(w))
        return false;
    ssize_t n = pread(w->fd, piece, sizeof piece, (off_t)w->at);
    w->failed = n < 0;
    if (n <= 0) {
        if (w->line_open)
            end_line(w);
        return false;
    }
    w->at += (uint64_t)n;
    return add_lines(w, piece, (size_t)n);
}

bool window_slice(struct window *w) {
    bool more = true;
    if (!w->looked) {
        w->looked = true;
        if (!window_look(w))
            return false;
    }
    bool lines = w->kind == WINDOW_TEXT;
    for (size_t n = 0; more && n < SLICE; n += PIECE)
        more = lines ? read_lines(w) : read_whole(w);
    if (!more && !lines)
        finish_whole(w);
    return more;
}
