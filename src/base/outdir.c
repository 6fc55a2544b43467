/* See outdir.h. A file is written under a name of ours in its directory and renamed. */

#include "base/outdir.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int outdir_fail(struct err *e, const char *dir, const char *name) {
    int code = errno;
    char quoted[160];
    err_user(e, "output_failed", "cannot write %s below %s: %s",
             log_quote(name, quoted, sizeof quoted), dir, strerror(code));
    e->code = code;
    return -1;
}

/* The nearest ancestor that exists, for a directory that does not. */
static int check_parent(const char *path, struct err *e) {
    AUTO_FREE char *dir = xstrdup(path);
    for (;;) {
        char *slash = strrchr(dir, '/');
        const char *look = slash == dir ? "/" : dir;
        if (!slash)
            look = ".";
        else if (slash > dir)
            *slash = '\0';
        struct stat st;
        if (stat(look, &st) == 0) {
            if (!S_ISDIR(st.st_mode))
                return err_user(e, "output_failed", "--out %s: %s is no directory", path, look);
            if (access(look, W_OK | X_OK) < 0)
                return err_user(e, "output_failed", "--out %s: %s: %s", path, look,
                                strerror(errno));
            return 0;
        }
        if (!slash || slash == dir)
            return err_user(e, "output_failed", "--out %s: %s", path, strerror(errno));
    }
}

int outdir_check(const char *path, struct err *e) {
    struct stat st;
    if (!*path)
        return err_user(e, "bad_value", "--out is empty; it must name a directory");
    if (stat(path, &st) < 0)
        return errno == ENOENT
                   ? check_parent(path, e)
                   : err_user(e, "output_failed", "--out %s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return err_user(e, "output_failed", "--out %s is no directory", path);
    if (access(path, W_OK | X_OK) < 0)
        return err_user(e, "output_failed", "--out %s: %s", path, strerror(errno));
    return 0;
}

int outdir_open(struct outdir *d, struct err *e) {
    if (d->fd >= 0)
        return 0;
    AUTO_FREE char *path = xstrdup(d->path);
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        (void)mkdir(path, 0777); /* what cannot be made shows in the open below */
        *p = '/';
    }
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return err_user(e, "output_failed", "cannot make %s: %s", path, strerror(errno));
    d->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (d->fd < 0)
        return err_user(e, "output_failed", "cannot open %s: %s", path, strerror(errno));
    return 0;
}

void outdir_done(struct outdir *d) {
    fd_close(&d->fd);
}

static int open_beneath(int dir, const char *name, uint64_t flags) {
    struct open_how how = {.flags = flags | O_CLOEXEC,
                           .mode = flags & O_CREAT ? 0600 : 0,
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, dir, name, &how, sizeof how);
}

static bool is_component(const char *s) {
    return *s && strcmp(s, ".") != 0 && strcmp(s, "..") != 0;
}

/* One that is there is as well. */
static int make_dir(const struct outdir *d, int dir, const char *name) {
    if (mkdirat(dir, name, d->dirs ? d->dirs : 0777) < 0)
        return errno == EEXIST ? 0 : -1;
    return d->dirs ? fchmodat(dir, name, d->dirs, 0) : 0;
}

/* Walks to the directory of `name`, making what is missing; *ret_last is the last component. */
static int open_parent(const struct outdir *d, char *name, int *ret_dir, const char **ret_last) {
    AUTO_FD dir = open_beneath(d->fd, ".", O_PATH | O_DIRECTORY);
    char *rest = name, *part;
    while ((part = strsep(&rest, "/")) && dir >= 0) {
        if (!is_component(part)) {
            errno = EINVAL;
            return -1;
        }
        if (!rest) {
            *ret_last = part;
            *ret_dir = fd_take(&dir);
            return 0;
        }
        if (make_dir(d, dir, part) < 0)
            return -1;
        int next = open_beneath(dir, part, O_PATH | O_DIRECTORY);
        fd_close(&dir);
        dir = next;
    }
    return -1;
}

/* Holes stay holes: a program can make many of them that are each as large as its disk. */
static int copy(int from, int to, uint64_t size) {
    char chunk[65536];
    off_t at = 0, end = (off_t)size;
    while (at < end) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data >= end || (data < 0 && errno == ENXIO))
            break;
        at = data > at ? data : at;
        size_t left = (size_t)(end - at);
        ssize_t n = pread(from, chunk, left < sizeof chunk ? left : sizeof chunk, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || lseek(to, at, SEEK_SET) < 0)
            return -1;
        if (n == 0)
            break;
        struct err e;
        if (fd_write_all(to, chunk, (size_t)n, &e) < 0) {
            errno = e.code;
            return -1;
        }
        at += n;
    }
    return ftruncate(to, end);
}

/* New files have 0600; what umask would have given a new file comes before the rename. */
static mode_t usual_mode(const struct outdir *d, int source) {
    struct stat st;
    bool executable = fstat(source, &st) == 0 && (st.st_mode & S_IXUSR);
    mode_t mode = executable ? 0777 : 0666;
    if (d->dirs)
        return mode & d->dirs;
    mode_t mask = umask(0); /* which all threads share: this is for those who have one */
    umask(mask);
    return mode & ~mask;
}

int outdir_write(struct outdir *d, const char *name, int fd, uint64_t size, struct err *e) {
    if (outdir_open(d, e) < 0)
        return -1;
    if (size > INT64_MAX)
        return err_set(e, EPROTO, "a file of impossible size");
    AUTO_FREE char *parts = xstrdup(name);
    AUTO_FD dir = -1;
    const char *last = NULL;
    if (open_parent(d, parts, &dir, &last) < 0)
        return outdir_fail(e, d->path, name);
    char temporary[ID_MAX];
    id_make(".cloche-", temporary, sizeof temporary);
    AUTO_FD to = open_beneath(dir, temporary, O_WRONLY | O_CREAT | O_EXCL);
    if (to < 0)
        return outdir_fail(e, d->path, name);
    if (copy(fd, to, size) < 0 || fchmod(to, usual_mode(d, fd)) < 0 ||
        renameat(dir, temporary, dir, last) < 0) {
        outdir_fail(e, d->path, name);
        unlinkat(dir, temporary, 0);
        return -1;
    }
    return 0;
}

int outdir_mkdir(struct outdir *d, const char *name, struct err *e) {
    if (outdir_open(d, e) < 0)
        return -1;
    AUTO_FREE char *parts = xstrdup(name);
    AUTO_FD dir = -1;
    AUTO_FD made = -1;
    const char *last = NULL;
    if (open_parent(d, parts, &dir, &last) < 0)
        return outdir_fail(e, d->path, name);
    if (make_dir(d, dir, last) < 0)
        return outdir_fail(e, d->path, name);
    made = open_beneath(dir, last, O_PATH | O_DIRECTORY);
    return made < 0 ? outdir_fail(e, d->path, name) : 0;
}
