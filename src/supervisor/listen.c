/* See listen.h. An address holds 107 bytes; a longer path is reached through /proc/self/fd and a
 * descriptor of its directory. */

#include "supervisor/listen.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/safedir.h"
#include "config/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG     1024 /* the kernel cuts it to somaxconn */
#define DYING_MS    500
#define DYING_TRIES 20

struct address {
    struct sockaddr_un un;
    int dir; /* owned, or -1: must stay open while the address is used */
};

static int address_of(const char *path, struct address *ret, struct err *e) {
    *ret = (struct address){.un.sun_family = AF_UNIX, .dir = -1};
    size_t cap = sizeof ret->un.sun_path;
    if ((size_t)snprintf(ret->un.sun_path, cap, "%s", path) < cap)
        return 0;
    const char *slash = strrchr(path, '/');
    AUTO_FREE char *dir = xstrndup(path, slash ? (size_t)(slash - path) : 0);
    ret->dir = slash && dir ? open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (ret->dir < 0)
        return err_sys(e, "%s", path);
    if ((size_t)snprintf(ret->un.sun_path, cap, "/proc/self/fd/%d%s", ret->dir, slash) < cap)
        return 0;
    fd_close(&ret->dir);
    return err_user(e, "bad_value", "the socket's name %s is too long", slash + 1);
}

static int new_socket(int *ret, struct err *e) {
    *ret = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    return *ret < 0 ? err_sys(e, "socket") : 0;
}

static int connect_error(const char *path, struct err *e) {
    switch (errno) {
    case ENOENT:
    case ENOTDIR:
    case ECONNREFUSED:
        return err_user(e, "no_engine", "no engine listens on %s", path);
    case EACCES:
    case EPERM:
        return err_user(e, "no_privilege", "the engine on %s is not open to this user", path);
    case EPROTOTYPE:
    case ENOTSOCK:
        return err_user(e, "no_engine", "%s is no engine's socket", path);
    case EAGAIN:
        return err_user(e, "engine_gone", "the engine on %s takes no more connections now", path);
    default:
        return err_sys(e, "connect to %s", path);
    }
}

int listen_connect(const char *path, int *ret_fd, struct err *e) {
    struct address a;
    if (address_of(path, &a, e) < 0)
        return e->code == ENOENT ? err_user(e, "no_engine", "no engine listens on %s", path) : -1;
    AUTO_FD dir = a.dir;
    (void)dir; /* clang does not count a cleanup as a use */
    AUTO_FD fd = -1;
    if (new_socket(&fd, e) < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&a.un, sizeof a.un) < 0)
        return connect_error(path, e);
    *ret_fd = fd_take(&fd);
    return 0;
}

/* The directory, locked against another engine that starts at the same moment. */
static int open_directory(const char *path, int *ret_fd, struct err *e) {
    const char *slash = strrchr(path, '/');
    AUTO_FREE char *dir = slash > path ? xstrndup(path, (size_t)(slash - path)) : xstrdup("/");
    AUTO_FREE char *state = paths_state_dir(); /* see paths_socket */
    mode_t mode = strcmp(dir, "/run/cloche") == 0 ? 0755 : 0700;
    AUTO_FD fd = -1;
    if (state && strcmp(dir, state) == 0 && paths_make_state_dir(dir, &fd, e) < 0)
        return -1;
    if (mkdir(dir, mode) < 0 && errno != EEXIST)
        return err_user(e, errno == EACCES ? "no_privilege" : "no_such_file",
                        "cannot make %s for the engine's socket (--socket): %s", dir,
                        strerror(errno));
    if (fd < 0 && safedir_open(dir, &fd, e) < 0)
        return -1;
    while (flock(fd, LOCK_EX) < 0) {
        if (errno != EINTR)
            return err_sys(e, "lock %s", dir);
    }
    *ret_fd = fd_take(&fd);
    return 0;
}

/* True when whoever took our connection lets go of it: an engine that is being taken down, perhaps
 * because its supervisor was killed and is now started again. A live one waits for our request. */
static bool goes_away(int conn) {
    struct pollfd p = {.fd = conn, .events = POLLIN};
    return poll(&p, 1, DYING_MS) > 0;
}

static int remove_stale(const char *path, struct err *e) {
    for (int tries = 0; tries < DYING_TRIES; tries++) {
        struct stat st;
        if (lstat(path, &st) < 0)
            return errno == ENOENT ? 0 : err_sys(e, "%s", path);
        if (!S_ISSOCK(st.st_mode))
            return err_user(e, "bad_value", "%s is there and is no socket", path);
        AUTO_FD conn = -1;
        if (listen_connect(path, &conn, e) < 0) {
            if (strcmp(e->kind, "no_engine") != 0)
                return -1;
            return unlink(path) == 0 || errno == ENOENT ? 0 : err_sys(e, "remove %s", path);
        }
        if (!goes_away(conn))
            break;
    }
    return err_user(e, "engine_running", "an engine listens on %s already", path);
}

/* Bound and listening, mode 0600 from the first moment. */
static int bind_socket(const char *path, int *ret_fd, struct err *e) {
    struct address a;
    if (address_of(path, &a, e) < 0)
        return -1;
    AUTO_FD dir = a.dir;
    (void)dir; /* clang does not count a cleanup as a use */
    AUTO_FD fd = -1;
    if (new_socket(&fd, e) < 0)
        return -1;
    mode_t old = umask(0177);
    int rc = bind(fd, (struct sockaddr *)&a.un, sizeof a.un);
    umask(old);
    if (rc < 0)
        return err_user(e, errno == EACCES ? "no_privilege" : "engine_failed",
                        "cannot make the socket %s: %s", path, strerror(errno));
    if (listen(fd, BACKLOG) < 0) {
        err_sys(e, "listen on %s", path);
        unlink(path);
        return -1;
    }
    *ret_fd = fd_take(&fd);
    return 0;
}

int listen_at(const char *path, struct listener *ret, struct err *e) {
    *ret = (struct listener){.fd = -1};
    AUTO_FD lock = -1;
    if (open_directory(path, &lock, e) < 0 || remove_stale(path, e) < 0)
        return -1;
    AUTO_FD fd = -1;
    if (bind_socket(path, &fd, e) < 0)
        return -1;
    struct stat st;
    if (lstat(path, &st) < 0)
        return err_sys(e, "%s", path);
    *ret = (struct listener){fd_take(&fd), xstrdup(path), st.st_dev, st.st_ino};
    return 0;
}

void listen_done(struct listener *l) {
    fd_close(&l->fd);
    struct stat st;
    if (l->path && lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
        unlink(l->path);
    free(l->path);
    *l = (struct listener){.fd = -1};
}

/* A fresh directory of our own, wherever we can make one. */
static int make_private_dir(char *out, size_t cap, struct err *e) {
    const char *places[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp", "/run",
                            "/dev/shm"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (!places[i] || places[i][0] != '/')
            continue;
        if ((size_t)snprintf(out, cap, "%s/cloche-XXXXXX", places[i]) < cap && mkdtemp(out))
            return 0;
    }
    return err_user(e, "output_failed", "cannot make a temporary directory: %s", strerror(errno));
}

int listen_private(int *ret_listen, int *ret_conn, struct err *e) {
    char dir[3072], path[3100];
    if (make_private_dir(dir, sizeof dir, e) < 0)
        return -1;
    snprintf(path, sizeof path, "%s/engine.sock", dir);
    AUTO_FD fd = -1;
    AUTO_FD conn = -1;
    int rc = bind_socket(path, &fd, e);
    if (rc == 0) {
        rc = listen_connect(path, &conn, e);
        unlink(path);
    }
    rmdir(dir);
    if (rc < 0)
        return -1;
    *ret_listen = fd_take(&fd);
    *ret_conn = fd_take(&conn);
    return 0;
}
