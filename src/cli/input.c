/* See input.h. */

#include "cli/input.h"

#include "base/fd.h"
#include "base/log.h"
#include "wire/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_MAX  (1u << 30) /* of a pipe: more than any workspace holds */
#define WORKSPACE "/workspace/"

static int open_error(const char *what, const char *path, struct err *e) {
    const char *kind = errno == ENOENT || errno == ENOTDIR ? "no_such_file" : "not_readable";
    return err_user(e, kind, "%s%s: %s", what, path, strerror(errno));
}

static int open_file(const char *what, const char *path, int *ret_fd, struct stat *ret_st,
                     struct err *e) {
    AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, ret_st) < 0)
        return open_error(what, path, e);
    if (S_ISDIR(ret_st->st_mode))
        return err_user(e, "is_directory", "%s%s is a directory", what, path);
    *ret_fd = fd_take(&fd);
    return 0;
}

/* All that comes out of `from`, in a memfd. */
static int copy_to_memfd(const char *path, int from, int *ret_fd, struct err *e) {
    AUTO_FD to = memfd_create("input", MFD_CLOEXEC);
    if (to < 0)
        return err_sys(e, "memfd_create");
    char chunk[65536];
    size_t total = 0;
    for (;;) {
        ssize_t n = read(from, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return open_error("--file ", path, e);
        if (n == 0)
            break;
        total += (size_t)n;
        if (total > COPY_MAX)
            return err_user(e, "too_large", "--file %s: more than %u bytes", path, COPY_MAX);
        if (fd_write_all(to, chunk, (size_t)n, e) < 0)
            return err_wrap(e, "--file %s", path);
    }
    *ret_fd = fd_take(&to);
    return 0;
}

/* Where HOST ends: at the last colon, unless a file of the whole name is there and none of the
 * shorter. */
static size_t host_length(const char *spec) {
    const char *colon = strrchr(spec, ':');
    if (!colon || colon == spec)
        return strlen(spec);
    size_t n = (size_t)(colon - spec);
    AUTO_FREE char *host = xstrndup(spec, n);
    if (host && access(host, F_OK) < 0 && access(spec, F_OK) == 0)
        return strlen(spec);
    return n;
}

/* SECURITY: the engine checks the path again; this is for a message that names the option. */
static int sandbox_path(const char *spec, const char *host, const char *wanted, char **ret,
                        struct err *e) {
    const char *slash = strrchr(host, '/');
    const char *name = slash ? slash + 1 : host;
    if (strncmp(wanted, WORKSPACE, strlen(WORKSPACE)) == 0)
        wanted += strlen(WORKSPACE);
    AUTO_BUF path = BUF_INIT;
    buf_adds(&path, wanted);
    if (path.len == 0 || path.data[path.len - 1] == '/')
        buf_adds(&path, name);
    bool good = path.len > 0 && path.data[0] != '/' && path.data[path.len - 1] != '/';
    for (const char *p = path.data; *p && good; p += strspn(p, "/")) {
        size_t n = strcspn(p, "/");
        good = !(n == 2 && strncmp(p, "..", 2) == 0) && n <= 255;
        p += n;
    }
    if (!good || path.len >= 4096) {
        char quoted[120];
        return err_user(e, "bad_value",
                        "--file %s: the sandbox's path must be below /workspace, without ..",
                        log_quote(spec, quoted, sizeof quoted));
    }
    *ret = buf_take(&path);
    return 0;
}

int input_open(const char *spec, struct input *ret, struct err *e) {
    size_t n = host_length(spec);
    AUTO_FREE char *host = xstrndup(spec, n);
    if (!host)
        return err_set(e, ENOMEM, "--file: out of memory");
    AUTO_FREE char *path = NULL;
    if (sandbox_path(spec, host, spec[n] ? spec + n + 1 : "", &path, e) < 0)
        return -1;
    AUTO_FD fd = -1;
    struct stat st = {0};
    if (open_file("--file ", host, &fd, &st, e) < 0)
        return -1;
    if (!S_ISREG(st.st_mode)) {
        AUTO_FD copy = -1;
        if (copy_to_memfd(host, fd, &copy, e) < 0)
            return -1;
        fd_close(&fd);
        fd = fd_take(&copy);
        st.st_mode = 0644;
    }
    *ret = (struct input){fd_take(&fd), path, st.st_mode & 0777};
    path = NULL;
    return 0;
}

void input_done(struct input *i) {
    fd_close(&i->fd);
    free(i->path);
    i->path = NULL;
}

int input_code(const char *path, struct buf *to, struct err *e) {
    AUTO_FD opened = -1;
    int fd = STDIN_FILENO;
    if (strcmp(path, "-") != 0) {
        struct stat st;
        if (open_file("", path, &opened, &st, e) < 0)
            return -1;
        fd = opened;
    }
    for (;;) {
        ssize_t n = read(fd, buf_reserve(to, 65536), 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return open_error("", path, e);
        if (n == 0)
            return 0;
        buf_commit(to, (size_t)n);
        if (to->len > RUN_MAX_CODE)
            return err_user(e, "too_large", "%s: a program has at most %u bytes", path,
                            RUN_MAX_CODE);
    }
}
