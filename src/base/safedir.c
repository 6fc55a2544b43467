/* See safedir.h. One descriptor at a time: each component is opened without following it, looked at
 * through its descriptor, and is then where the next one is looked up. */

#include "base/safedir.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/service.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 16
#define NOBODY    65534 /* whom the server runs as where there is no user of its own */

struct safewalk {
    const char *path; /* borrowed: what errors name */
    int dir;          /* owned */
    bool make;
    mode_t mode;
    bool is_open;  /* others than root can make and swap entries of `dir` */
    bool is_world; /* and that is everybody */
    unsigned links;
};

static int cannot(const struct safewalk *w, const char *name, struct err *e) {
    return err_user(e,
                    errno == EACCES || errno == EPERM ? "no_privilege"
                    : w->make                         ? "output_failed"
                                                      : "no_such_file",
                    "%s: %s: %s", w->path, name, strerror(errno));
}

/* Whom root trusts with what the server writes. */
static bool is_trusted(const struct safewalk *w, uid_t uid) {
    return uid == 0 || uid == service_find().uid || (uid == NOBODY && !w->is_world);
}

static int judge(const struct safewalk *w, const char *name, const struct stat *st, struct err *e) {
    if (geteuid() != 0 || !w->is_open)
        return 0;
    if (S_ISLNK(st->st_mode))
        return err_user(e, "foreign_path",
                        "%s: %s is a symbolic link in a directory that others than root can write "
                        "to (uid %u made it)",
                        w->path, name, (unsigned)st->st_uid);
    if (!is_trusted(w, st->st_uid))
        return err_user(e, "foreign_path",
                        "%s: %s belongs to another user (uid %u), who could change what is in it",
                        w->path, name, (unsigned)st->st_uid);
    return 0;
}

/* Takes the directory for the next step. */
static void enter(struct safewalk *w, int *fd, const struct stat *st) {
    bool group = (st->st_mode & S_IWGRP) && st->st_gid != 0;
    w->is_world = st->st_mode & S_IWOTH;
    w->is_open = st->st_uid != 0 || group || w->is_world;
    fd_close(&w->dir);
    w->dir = fd_take(fd);
}

static int make_one(const struct safewalk *w, const char *name, struct err *e) {
    if (mkdirat(w->dir, name, w->mode) < 0)
        return errno == EEXIST ? 0 : cannot(w, name, e);
    AUTO_FD made = openat(w->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (made < 0 || fstat(made, &st) < 0 || st.st_uid != geteuid() || fchmod(made, w->mode) < 0)
        return cannot(w, name, e);
    return 0;
}

static int walk(struct safewalk *w, char *path, struct err *e);

static int follow_link(struct safewalk *w, int link, const char *name, struct err *e) {
    char target[PATH_MAX];
    ssize_t n = readlinkat(link, "", target, sizeof target - 1);
    if (n < 0 || ++w->links > LINKS_MAX) {
        errno = n < 0 ? errno : ELOOP;
        return cannot(w, name, e);
    }
    target[n] = '\0';
    return walk(w, target, e);
}

static int step(struct safewalk *w, const char *name, struct err *e) {
    AUTO_FD fd = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && w->make) {
        if (make_one(w, name, e) < 0)
            return -1;
        fd = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    }
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return cannot(w, name, e);
    if (judge(w, name, &st, e) < 0)
        return -1;
    if (S_ISLNK(st.st_mode))
        return follow_link(w, fd, name, e);
    if (!S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        return cannot(w, name, e);
    }
    enter(w, &fd, &st);
    return 0;
}

/* From "/" if the path begins there, else from where the walk is. */
static int walk(struct safewalk *w, char *path, struct err *e) {
    char *rest = path, *name;
    if (*path == '/' || w->dir < 0) {
        struct stat st;
        AUTO_FD from = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (from < 0 || fstat(from, &st) < 0)
            return cannot(w, path, e);
        enter(w, &from, &st);
    }
    while ((name = strsep(&rest, "/"))) {
        if (*name && step(w, name, e) < 0)
            return -1;
    }
    return 0;
}

static int safedir(struct safewalk *w, int *ret, struct err *e) {
    AUTO_FREE char *path = xstrdup(w->path);
    int rc = walk(w, path, e);
    AUTO_FD fd = rc < 0 ? -1 : openat(w->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (rc == 0 && fd < 0)
        rc = cannot(w, ".", e);
    fd_close(&w->dir);
    *ret = fd_take(&fd);
    return rc;
}

int safedir_make(const char *path, mode_t mode, int *ret, struct err *e) {
    struct safewalk w = {.path = path, .dir = -1, .make = true, .mode = mode};
    return safedir(&w, ret, e);
}

int safedir_open(const char *path, int *ret, struct err *e) {
    struct safewalk w = {.path = path, .dir = -1};
    return safedir(&w, ret, e);
}
