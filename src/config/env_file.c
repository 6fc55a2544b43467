/* See env_file.h. */

#include "config/env_file.h"

#include "base/buf.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct env_line {
    const char *path;
    unsigned number;
    const char *at, *end; /* what is still to be read of it */
};

static int wrong(const struct env_line *l, const char *what, struct err *e) {
    return err_user(e, "bad_config", "%s: line %u: %s", l->path, l->number, what);
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

static void skip_blanks(struct env_line *l) {
    while (l->at < l->end && is_blank(*l->at))
        l->at++;
}

/* Whether a comment or nothing is left; a '#' begins one only behind a blank. */
static bool is_rest_empty(const struct env_line *l) {
    const char *p = l->at;
    while (p < l->end && is_blank(*p))
        p++;
    return p == l->end || (*p == '#' && p > l->at);
}

static void skip_export(struct env_line *l) {
    size_t n = strlen("export");
    if ((size_t)(l->end - l->at) > n && strncmp(l->at, "export", n) == 0 && is_blank(l->at[n])) {
        l->at += n;
        skip_blanks(l);
    }
}

static bool is_of_name(char c, bool first) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

static int read_name(struct env_line *l, struct buf *to, struct err *e) {
    const char *start = l->at;
    while (l->at < l->end && is_of_name(*l->at, l->at == start))
        l->at++;
    buf_add(to, start, (size_t)(l->at - start));
    skip_blanks(l);
    if (to->len == 0 || l->at == l->end || *l->at != '=')
        return wrong(l, "NAME=VALUE is expected", e);
    l->at++;
    return 0;
}

static void add_escaped(struct buf *to, char c) {
    static const char from[] = "nrt\"\\$", meant[] = "\n\r\t\"\\$";
    const char *known = c ? strchr(from, c) : NULL;
    if (!known)
        buf_addc(to, '\\');
    buf_addc(to, known ? meant[known - from] : c);
}

static int read_quoted(struct env_line *l, struct buf *to, struct err *e) {
    char quote = *l->at++;
    for (; l->at < l->end && *l->at != quote; l->at++) {
        if (quote == '"' && *l->at == '\\' && l->at + 1 < l->end)
            add_escaped(to, *++l->at);
        else
            buf_addc(to, *l->at);
    }
    if (l->at == l->end)
        return wrong(l, "the quote is not closed on this line", e);
    l->at++;
    return is_rest_empty(l) ? 0 : wrong(l, "something stands behind the quote", e);
}

static int read_env_value(struct env_line *l, struct buf *to, struct err *e) {
    if (is_rest_empty(l))
        return 0;
    skip_blanks(l);
    if (*l->at == '"' || *l->at == '\'')
        return read_quoted(l, to, e);
    const char *start = l->at;
    while (!is_rest_empty(l))
        l->at++;
    buf_add(to, start, (size_t)(l->at - start));
    return 0;
}

static int read_line(struct env_line *l, env_file_fn *fn, void *arg, struct err *e) {
    AUTO_BUF name = BUF_INIT;
    AUTO_BUF value = BUF_INIT;
    if (memchr(l->at, '\0', (size_t)(l->end - l->at)))
        return wrong(l, "a NUL byte is in it", e);
    if (l->end > l->at && l->end[-1] == '\r')
        l->end--;
    skip_blanks(l);
    if (l->at == l->end || *l->at == '#')
        return 0;
    skip_export(l);
    int rc = read_name(l, &name, e);
    if (rc == 0)
        rc = read_env_value(l, &value, e);
    if (rc == 0)
        fn(arg, name.data, value.data);
    explicit_bzero(value.data, value.len); /* it may be a secret */
    return rc;
}

int env_file_parse(const char *path, const char *text, size_t len, env_file_fn *fn, void *arg,
                   struct err *e) {
    struct env_line l = {.path = path};
    int rc = 0;
    for (const char *at = text, *end = text + len; at < end && rc == 0;) {
        const char *lf = memchr(at, '\n', (size_t)(end - at));
        l.number++;
        l.at = at;
        l.end = lf ? lf : end;
        at = lf ? lf + 1 : end;
        rc = read_line(&l, fn, arg, e);
    }
    return rc;
}

static int check_owner(int fd, const char *path, struct err *e) {
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(e, "%s", path);
    if (!S_ISREG(st.st_mode))
        return err_user(e, "bad_config", "%s: is no regular file", path);
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return err_user(e, "foreign_path",
                        "%s belongs to another user (uid %u), who could change what runs here; "
                        "take it over (chown) or remove it",
                        path, (unsigned)st.st_uid);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return err_user(e, "foreign_path", "%s may be written by others; chmod go-w it", path);
    return 0;
}

int env_file_read(const char *path, env_file_fn *fn, void *arg, bool *ret_read, struct err *e) {
    *ret_read = false;
    AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == EPERM))
        return 0;
    if (fd < 0)
        return err_user(e, "not_readable", "%s: %s", path, strerror(errno));
    if (check_owner(fd, path, e) < 0)
        return -1;
    AUTO_FREE char *text = xmalloc(ENV_FILE_MAX + 1);
    size_t len = 0;
    int rc = fd_read_all(fd, text, ENV_FILE_MAX + 1, &len, e);
    if (rc < 0 && e->code == EFBIG)
        err_user(e, "bad_config", "%s: has more than %u bytes", path, ENV_FILE_MAX);
    else if (rc < 0)
        err_user(e, "not_readable", "%s: %s", path, strerror(e->code));
    else
        rc = env_file_parse(path, text, len, fn, arg, e);
    explicit_bzero(text, ENV_FILE_MAX + 1);
    *ret_read = rc == 0;
    return rc;
}
