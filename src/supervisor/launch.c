/* See launch.h. Of the command line only this and keeper.c fork. What can fail in the child is sent
 * back as a struct err through a pipe that closes on exec. */

#include "supervisor/launch.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/signals.h"
#include "config/config.h"
#include "sandbox/cgroup.h"
#include "wire/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define STOP_MS  20000 /* taking down an engine takes milliseconds; this is for a sick machine */
#define FIRST_FD 3
#define OWN_FDS  5
#define MAX_FDS  (OWN_FDS + HTTP_FD_DIRS_ + HTTP_MAX_LISTENERS)
#define CLEAR_FD 64 /* above all that is handed over */

/* SECURITY: whoever starts an engine may have secrets in the environment; no process below has use
 * for them, nor for our settings, among which are secrets too. Kept: places, language, time zone,
 * and what sanitizers and coverage read. */
static const char *const kept_variables[] = {
    "HOME=",
    "LANG=",
    "LC_",
    "TZ=",
    "USER=",
    "TMPDIR=",
    "XDG_RUNTIME_DIR=",
    "ASAN_OPTIONS=",
    "LSAN_OPTIONS=",
    "UBSAN_OPTIONS=",
    "LLVM_PROFILE_FILE=",
    "GCOV_PREFIX",
};

static bool is_kept(const char *variable) {
    for (size_t k = 0; k < sizeof kept_variables / sizeof kept_variables[0]; k++)
        if (strncmp(variable, kept_variables[k], strlen(kept_variables[k])) == 0)
            return true;
    return false;
}

static char **warden_environment(void) {
    size_t n = 0;
    while (environ[n])
        n++;
    char **env = xcalloc(n + 2, sizeof *env);
    size_t at = 0;
    env[at++] = (char *)"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    for (size_t i = 0; i < n; i++)
        if (is_kept(environ[i]))
            env[at++] = environ[i];
    return env;
}

struct child {
    const char *path;
    char **env;
    int fds[MAX_FDS];
    int nfds;
    int null;
    int errors;
};

static int place_descriptors(struct child *c, struct err *e) {
    if (dup2(c->null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return err_sys(e, "standard streams");
    /* Out of the way first: a source may lie where another belongs. */
    for (int i = 0; i <= c->nfds; i++) {
        int *fd = i < c->nfds ? &c->fds[i] : &c->errors;
        *fd = fcntl(*fd, F_DUPFD_CLOEXEC, CLEAR_FD);
        if (*fd < 0)
            return err_sys(e, "descriptors");
    }
    for (int i = 0; i < c->nfds; i++)
        if (dup2(c->fds[i], FIRST_FD + i) < 0)
            return err_sys(e, "descriptors");
    if (close_range((unsigned)(FIRST_FD + c->nfds), ~0u, CLOSE_RANGE_CLOEXEC) < 0)
        return err_sys(e, "close_range");
    return 0;
}

__attribute__((noreturn)) static void become_warden(struct child *c) {
    struct err e;
    signals_reset(); /* of a service manager, or of nohup */
    setsid();
    if (place_descriptors(c, &e) == 0) {
        char *argv[] = {(char *)"cloche-warden", NULL};
        execve(c->path, argv, c->env);
        err_sys(&e, "start %s", c->path);
    }
    (void)!write(c->errors, &e, sizeof e);
    _exit(127);
}

/* 0 when the child has become the warden. */
static int wait_for_exec(int errors, struct err *e) {
    struct err got;
    ssize_t n;
    do
        n = read(errors, &got, sizeof got);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        return 0;
    if (n != (ssize_t)sizeof got)
        return err_set(e, EIO, "start the engine: no word from the child");
    got.text[sizeof got.text - 1] = '\0';
    return err_user(e, "engine_failed", "%s", got.text);
}

static int spawn(struct child *c, struct warden *w, struct err *e) {
    int errors[2];
    if (pipe2(errors, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    AUTO_FD read_end = errors[0];
    AUTO_FD write_end = errors[1];
    c->errors = write_end;
    w->pid = fork();
    if (w->pid < 0)
        return err_sys(e, "fork");
    if (w->pid == 0)
        become_warden(c);
    fd_close(&write_end);
    w->pidfd = pidfd_open(w->pid, 0);
    if (w->pidfd < 0 || wait_for_exec(read_end, e) < 0) {
        if (w->pidfd < 0)
            err_sys(e, "pidfd_open");
        kill(w->pid, SIGKILL);
        waitpid(w->pid, NULL, 0);
        fd_close(&w->pidfd);
        return -1;
    }
    return 0;
}

/* For the warden, and for the server, which the warden only hands on. */
static int pack_both(const struct config *c, int *ret_warden, int *ret_server, struct err *e) {
    const struct config_part own = {.reader = CONFIG_WARDEN}, all = {.reader = CONFIG_SERVER};
    return config_pack(c, &own, ret_warden, e) < 0 ? -1 : config_pack(c, &all, ret_server, e);
}

int warden_start(const struct config *c, int listen_fd, const int *http_fds, struct warden *ret,
                 struct err *e) {
    AUTO_FD config = -1, all = -1;
    if (pack_both(c, &config, &all, e) < 0)
        return -1;
    int life[2], ready[2];
    if (wire_pair(life, e) < 0)
        return -1;
    AUTO_FD life_read = life[0];
    AUTO_FD life_write = life[1];
    if (pipe2(ready, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    AUTO_FD ready_read = ready[0];
    AUTO_FD ready_write = ready[1];
    AUTO_FD null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return err_sys(e, "/dev/null");
    if (fd_set_nonblock(ready_read, e) < 0)
        return -1;
    AUTO_BUF path = BUF_INIT;
    buf_addf(&path, "%s/cloche-warden", c->libexec);
    AUTO_FREE char **env = warden_environment();
    struct child child = {.path = path.data,
                          .env = env,
                          .fds = {config, listen_fd, life_read, ready_write, all},
                          .nfds = OWN_FDS + (int)config_http_fds(c),
                          .null = null};
    for (int i = OWN_FDS; i < child.nfds; i++)
        child.fds[i] = http_fds[i - OWN_FDS];
    struct warden w = WARDEN_INIT;
    if (spawn(&child, &w, e) < 0)
        return -1;
    w.life = fd_take(&life_write);
    w.ready = fd_take(&ready_read);
    *ret = w;
    return 0;
}

int warden_tell(const struct warden *w, const struct config *c, struct err *e) {
    AUTO_FD config = -1, all = -1;
    if (pack_both(c, &config, &all, e) < 0)
        return -1;
    struct wire_out o;
    l_config_put(&o, &(struct l_config){.config = config, .all = all});
    return wire_send(w->life, &o, e) == WIRE_SENT ? 0 : -1;
}

/* What a warden leaves that could not clean up after itself. Its processes die with it; its control
 * groups stay until somebody removes them. */
static void sweep(const struct config *c) {
    enum cgroup_kind want = CGROUP_NONE;
    if (strcmp(c->cgroup, "none") == 0)
        return;
    if (strcmp(c->cgroup, "v1") == 0)
        want = CGROUP_V1;
    if (strcmp(c->cgroup, "v2") == 0)
        want = CGROUP_V2;
    struct cgroup_root root;
    struct err e;
    if (cgroup_root_open(&root, want, &e) < 0) {
        log_warn("sweep why=%s", log_text(e.text));
        return;
    }
    cgroup_sweep(&root);
    cgroup_root_close(&root);
}

int warden_reap(struct warden *w, const struct config *c) {
    int status = 0;
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    fd_close(&w->pidfd);
    fd_close(&w->life);
    w->pid = -1;
    bool in_order =
        WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == WARDEN_CANNOT);
    if (!in_order)
        sweep(c);
    return status;
}

/* 0 when it has not ended after so long. */
static int await_end(const struct warden *w, int ms) {
    struct pollfd p = {.fd = w->pidfd, .events = POLLIN};
    int n;
    do
        n = poll(&p, 1, ms);
    while (n < 0 && errno == EINTR);
    return n;
}

bool warden_drain(const struct warden *w, int signals, int within_ms) {
    struct pollfd p[] = {{.fd = w->pidfd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    if (kill(w->pid, SIGTERM) < 0)
        return false;
    while (poll(p, 2, within_ms) < 0 && errno == EINTR)
        ;
    return p[0].revents != 0;
}

int warden_stop(struct warden *w, const struct config *c, struct buf *words) {
    fd_close(&w->life);
    int status = 0;
    if (w->pid > 0) {
        if (await_end(w, STOP_MS) == 0) {
            log_error("warden does not end pid=%d", (int)w->pid);
            kill(w->pid, SIGKILL);
        }
        status = warden_reap(w, c);
    }
    if (words && w->ready >= 0)
        (void)warden_read(w, words);
    fd_close(&w->ready);
    return status;
}

int warden_read(struct warden *w, struct buf *to) {
    int some = 1;
    for (;;) {
        char *at = buf_reserve(to, 4096);
        ssize_t n = read(w->ready, at, 4096);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            some = 0;
        if (n <= 0)
            return some;
        buf_commit(to, (size_t)n);
    }
}
