/* See host_path.h. */

#include "remote/mcp/host_path.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/id.h"
#include "remote/mcp/options.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- the directories ---- */

static void add_dir(struct host_dirs *d, const char *path) {
    char *real = realpath(path, NULL);
    if (!real)
        return;
    d->paths = xrealloc(d->paths, (d->n + 1) * sizeof *d->paths);
    d->paths[d->n++] = real;
}

int host_dirs_open(struct host_dirs *d, const struct mcp_words *named, struct err *e) {
    const char *home = getenv("HOME");
    for (unsigned i = 0; i < named->n; i++) {
        unsigned before = d->n;
        add_dir(d, named->items[i]);
        if (d->n == before)
            return err_user(e, "no_such_file", "--allowed-dir %s: %s", named->items[i],
                            strerror(errno));
    }
    if (named->n)
        return 0;
    if (home && *home == '/')
        add_dir(d, home);
    add_dir(d, "/tmp");
    return 0;
}

void host_dirs_done(struct host_dirs *d) {
    for (unsigned i = 0; i < d->n; i++)
        free(d->paths[i]);
    ptr_free(&d->paths);
    d->n = 0;
}

static bool is_below(const char *path, const char *dir) {
    size_t len = strlen(dir);
    if (strcmp(dir, "/") == 0)
        return true;
    return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* ---- a path ---- */

/* As far as it is there; what is not may have neither . nor .. in it. NULL: it cannot be one. */
static char *resolve(const char *path) {
    AUTO_BUF front = BUF_INIT;
    AUTO_BUF rest = BUF_INIT;
    if (*path != '/' || strlen(path) >= PATH_MAX)
        return NULL;
    buf_adds(&front, path);
    for (;;) {
        AUTO_FREE char *real = realpath(front.data, NULL);
        if (real) {
            AUTO_BUF whole = BUF_INIT;
            buf_addf(&whole, "%s%s", strcmp(real, "/") == 0 && rest.len ? "" : real, rest.data);
            return buf_take(&whole);
        }
        /* SECURITY: a link to nowhere is there, too. */
        struct stat st;
        char *slash = strrchr(front.data, '/');
        if (errno != ENOENT || lstat(front.data, &st) == 0 || !slash)
            return NULL;
        if (strcmp(slash, "/..") == 0 || strcmp(slash, "/.") == 0)
            return NULL;
        AUTO_BUF more = BUF_INIT;
        buf_addf(&more, "%s%s", slash[1] ? slash : "", rest.data);
        buf_clear(&rest);
        buf_add(&rest, more.data, more.len);
        front.len = (size_t)(slash - front.data);
        *slash = '\0';
        if (!front.len)
            buf_adds(&front, "/");
    }
}

static char *allowed(const struct host_dirs *d, const char *path, const char *what, struct err *e) {
    AUTO_FREE char *real = resolve(path);
    for (unsigned i = 0; real && i < d->n; i++) {
        if (is_below(real, d->paths[i])) {
            char *ret = real;
            real = NULL;
            return ret;
        }
    }
    err_set(e, EPERM, "Path '%.200s' is not within allowed directories for %s", path, what);
    return NULL;
}

static int open_plainly(int at, const char *path, int flags) {
    const struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK),
                                 .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, at, path, &how, sizeof how);
}

int host_path_read(const struct host_dirs *d, const char *path, int *ret, struct err *e) {
    struct stat st;
    AUTO_FREE char *real = allowed(d, path, "upload", e);
    if (!real)
        return -1;
    AUTO_FD fd = open_plainly(AT_FDCWD, real, O_RDONLY);
    if (fd < 0 && errno == ENOENT)
        return err_set(e, ENOENT, "File not found: %.200s", path);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(e, errno, "%.200s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(e, EINVAL, "Not a file: %.200s", path);
    *ret = fd_take(&fd);
    return 0;
}

/* The directory of a resolved path, made step by step as far as it is missing. */
static int make_parents(char *real, int *ret) {
    AUTO_FD at = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (char *name = real + 1, *slash; at >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
        *slash = '\0';
        int next = open_plainly(at, name, O_RDONLY | O_DIRECTORY);
        if (next < 0 && errno == ENOENT && mkdirat(at, name, 0755) == 0)
            next = open_plainly(at, name, O_RDONLY | O_DIRECTORY);
        *slash = '/';
        fd_close(&at);
        at = next;
    }
    if (at < 0)
        return -1;
    *ret = fd_take(&at);
    return 0;
}

int host_path_write(const struct host_dirs *d, const char *path, struct host_write *ret,
                    int *ret_fd, struct err *e) {
    struct stat st;
    AUTO_FREE char *real = allowed(d, path, "download", e);
    if (!real)
        return -1;
    *ret = (struct host_write){.dir = -1};
    const char *name = strrchr(real, '/') + 1;
    if (stat(real, &st) == 0 && !S_ISREG(st.st_mode))
        return err_set(e, EINVAL, "Not a file: %.200s", path);
    if (!*name || make_parents(real, &ret->dir) < 0)
        return err_set(e, errno, "%.200s: %s", path, strerror(errno));
    ret->name = xstrdup(name);
    id_make(".cloche-", ret->part, sizeof ret->part);
    *ret_fd =
        openat(ret->dir, ret->part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (*ret_fd < 0) {
        ret->part[0] = '\0';
        err_set(e, errno, "%.200s: %s", path, strerror(errno));
        host_write_done(ret);
        return -1;
    }
    return 0;
}

int host_path_commit(struct host_write *w, struct err *e) {
    if (renameat(w->dir, w->part, w->dir, w->name) < 0)
        return err_set(e, errno, "%.200s: %s", w->name, strerror(errno));
    w->part[0] = '\0';
    return 0;
}

void host_write_done(struct host_write *w) {
    if (w->dir >= 0 && w->part[0])
        unlinkat(w->dir, w->part, 0);
    fd_close(&w->dir);
    ptr_free(&w->name);
}
