/* See images.h. The file's name is ours, only its content is the program's; what goes to the
 * terminal inline is decoded and encoded again, so that it is base64 and nothing else. */

#include "remote/images.h"

#include "base/base64.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILES_MAX   100000
#define KITTY_CHUNK 4096

/* Best first. */
static const struct format {
    const char *mime, *suffix;
    bool is_text; /* otherwise base64 */
} formats[] = {
    {"image/png", "png", false},   {"image/jpeg", "jpg", false},
    {"image/gif", "gif", false},   {"image/svg+xml", "svg", true},
    {"image/webp", "webp", false}, {"application/pdf", "pdf", false},
};

/* ---- what the terminal can ---- */

static bool is_set(const char *name) {
    const char *v = getenv(name);
    return v && *v;
}

/* Behind tmux and screen neither protocol arrives. */
static enum images_how find_protocol(void) {
    const char *program = getenv("TERM_PROGRAM"), *term = getenv("TERM");
    if (is_set("TMUX") || is_set("STY"))
        return IMAGES_FILES;
    if (is_set("KITTY_WINDOW_ID") || (term && strcmp(term, "xterm-kitty") == 0) ||
        (program && strcmp(program, "ghostty") == 0))
        return IMAGES_KITTY;
    if (program && (strcmp(program, "iTerm.app") == 0 || strcmp(program, "WezTerm") == 0))
        return IMAGES_ITERM;
    return IMAGES_FILES;
}

void images_init(struct images *s, const char *word, const char *dir) {
    bool is_terminal = isatty(STDOUT_FILENO);
    const char *term = getenv("TERM");
    *s = (struct images){.dir = dir, .next = 1};
    s->links = is_terminal && term && strcmp(term, "dumb") != 0;
    if (word && strcmp(word, "off") == 0) {
        s->how = IMAGES_OFF;
    } else if (word && strcmp(word, "inline") == 0) {
        enum images_how found = find_protocol();
        s->how = found == IMAGES_FILES ? IMAGES_KITTY : found;
    } else if (!word || strcmp(word, "auto") == 0) {
        s->how = is_terminal ? find_protocol() : IMAGES_FILES;
    }
}

void images_done(struct images *s) {
    free(s->temporary);
    s->temporary = NULL;
}

/* ---- inline ---- */

static void add_kitty(struct buf *to, const struct buf *image) {
    AUTO_BUF text = BUF_INIT;
    base64_encode(&text, image->data, image->len);
    for (size_t at = 0; at < text.len; at += KITTY_CHUNK) {
        size_t n = text.len - at < KITTY_CHUNK ? text.len - at : KITTY_CHUNK;
        buf_addf(to, "\033_G%sm=%d;", at ? "" : "a=T,f=100,q=2,", at + n < text.len);
        buf_add(to, text.data + at, n);
        buf_adds(to, "\033\\");
    }
    buf_addc(to, '\n');
}

static void add_iterm(struct buf *to, const struct buf *image) {
    buf_addf(to, "\033]1337;File=inline=1;size=%zu:", image->len);
    base64_encode(to, image->data, image->len);
    buf_adds(to, "\a\n");
}

/* ---- files ---- */

static int find_dir(struct images *s, const char **ret, struct err *e) {
    if (s->dir || s->temporary) {
        *ret = s->dir ? s->dir : s->temporary;
        return 0;
    }
    const char *tmp = getenv("TMPDIR");
    struct buf b = BUF_INIT;
    buf_addf(&b, "%s/cloche-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    s->temporary = buf_take(&b);
    if (!mkdtemp(s->temporary)) {
        err_user(e, "output_failed", "cannot make a directory for figures: %s", strerror(errno));
        free(s->temporary);
        s->temporary = NULL;
        return -1;
    }
    *ret = s->temporary;
    return 0;
}

/* The first number that is free. */
static int open_file(struct images *s, const char *suffix, struct buf *path, struct err *e) {
    const char *dir = NULL;
    if (find_dir(s, &dir, e) < 0)
        return -1;
    for (; s->next < FILES_MAX; s->next++) {
        buf_clear(path);
        if (strcmp(dir, ".") != 0)
            buf_addf(path, "%s/", dir);
        buf_addf(path, "figure-%u.%s", s->next, suffix);
        int fd = open(path->data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0)
            return fd;
        if (errno != EEXIST)
            break;
    }
    return err_user(e, "output_failed", "cannot save %s: %s", path->data, strerror(errno));
}

static void add_link(struct buf *to, const char *path) {
    AUTO_FREE char *whole = realpath(path, NULL);
    if (!whole)
        return;
    buf_adds(to, "\033]8;;file://");
    for (const char *p = whole; *p; p++) {
        if (*p > ' ' && *p < 127 && *p != '%')
            buf_addc(to, *p);
        else
            buf_addf(to, "%%%02X", (unsigned char)*p);
    }
    buf_adds(to, "\033\\");
}

static int save(struct images *s, const struct format *f, const struct buf *image, struct buf *to,
                struct err *e) {
    AUTO_BUF path = BUF_INIT;
    AUTO_FD fd = open_file(s, f->suffix, &path, e);
    if (fd < 0)
        return -1;
    if (fd_write_all(fd, image->data, image->len, e) < 0) {
        unlink(path.data);
        return err_user(e, "output_failed", "cannot save %s: %s", path.data, strerror(e->code));
    }
    s->next++;
    if (s->links)
        add_link(to, path.data);
    buf_adds(to, path.data);
    if (s->links)
        buf_adds(to, "\033]8;;\033\\");
    buf_addc(to, '\n');
    return 1;
}

/* ---- a bundle ---- */

static bool decode(const struct format *f, const json_t *data, struct buf *to) {
    size_t len = json_string_length(data);
    if (f->is_text) {
        buf_add(to, json_string_value(data), len);
        return true;
    }
    return base64_decode(to, json_string_value(data), len);
}

/* kitty takes PNG only, iTerm2 whatever the machine can show. */
static bool can_inline(enum images_how how, const struct format *f) {
    return how == IMAGES_KITTY ? f == &formats[0] : how == IMAGES_ITERM && !f->is_text;
}

int images_show(struct images *s, const json_t *bundle, struct buf *to, struct err *e) {
    if (s->how == IMAGES_OFF)
        return 0;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const struct format *f = &formats[i];
        const json_t *data = json_object_get(bundle, f->mime);
        AUTO_BUF image = BUF_INIT;
        if (!json_is_string(data) || !decode(f, data, &image))
            continue;
        if (!can_inline(s->how, f))
            return save(s, f, &image, to, e);
        if (s->how == IMAGES_KITTY)
            add_kitty(to, &image);
        else
            add_iterm(to, &image);
        return 1;
    }
    return 0;
}
