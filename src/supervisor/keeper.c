/* See keeper.h. The server is `cloche serve` in a directory of its own, which only its owner can
 * enter: HTTP is on a unix socket there and nowhere else, so nobody needs a key. */

#include "supervisor/keeper.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/rmtree.h"
#include "base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 512

struct keeper {
    int sock;
    char *dir; /* owned; NULL until it is made */
    pid_t pid; /* of the server; or -1 */
    int said;  /* what it prints */
    struct buf lines;
};

static void tell(struct keeper *k, const char *mark, const char *text) {
    AUTO_BUF words = BUF_INIT;
    buf_addf(&words, "%s%s", mark, text);
    (void)!send(k->sock, words.data, words.len, MSG_NOSIGNAL);
}

/* ---- its directory ---- */

/* A socket's path has a hundred bytes or so. */
static bool fits(const char *dir) {
    return dir && *dir == '/' &&
           strlen(dir) + sizeof "/cloche-mcp-XXXXXX/engine.sock" <=
               sizeof((struct sockaddr_un *)0)->sun_path;
}

static int make_dir(struct keeper *k, struct err *e) {
    const char *const places[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        AUTO_BUF path = BUF_INIT;
        if (!fits(places[i]))
            continue;
        buf_addf(&path, "%s/cloche-mcp-XXXXXX", places[i]);
        if (mkdtemp(path.data)) {
            k->dir = buf_take(&path);
            return 0;
        }
    }
    return err_user(e, "output_failed", "cannot make a directory in /tmp: %s", strerror(errno));
}

/* ---- the server ---- */

__attribute__((noreturn)) static void become_server(char **argv, int out, pid_t parent) {
    signals_reset();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent && dup2(out, STDOUT_FILENO) >= 0) {
        /* SECURITY: the key of another server is nothing for this one. */
        unsetenv("CLOCHE_API_KEY");
        unsetenv("CLOCHE_SERVER");
        execv("/proc/self/exe", argv);
    }
    _exit(127);
}

static int start_server(struct keeper *k, char **argv, struct err *e) {
    int out[2];
    if (pipe2(out, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    k->said = out[0];
    AUTO_FD theirs = out[1];
    pid_t self = getpid();
    k->pid = fork();
    if (k->pid < 0)
        return err_sys(e, "fork");
    if (k->pid == 0)
        become_server(argv, theirs, self);
    return 0;
}

/* Its words come last: they may overrule what is usual here, and nothing can overrule where it is.
 */
static int serve(struct keeper *k, char *words, size_t len, struct err *e) {
    char *argv[WORDS_MAX + 16] = {(char *)"cloche", (char *)"serve"};
    size_t n = 2, at = 0;
    AUTO_BUF fixed = BUF_INIT;
    buf_addf(&fixed,
             "--http=on%c--host=%c--also-listen=%c--http-socket=%s/http.sock%c"
             "--socket=%s/engine.sock%c--state-dir=%s/state%c--file-dir=%c--keys=%c--audit-dir=%c"
             "--live=on%c--drain-s=0",
             0, 0, 0, k->dir, 0, k->dir, 0, k->dir, 0, 0, 0, 0, 0);
    for (; at < len && n < WORDS_MAX; at += strlen(words + at) + 1)
        argv[n++] = words + at;
    if (at < len)
        return err_user(e, "bad_value", "these are more than %d settings", WORDS_MAX);
    for (at = 0; at < fixed.len; at += strlen(fixed.data + at) + 1)
        argv[n++] = fixed.data + at;
    return start_server(k, argv, e);
}

/* 1: it listens; 0: it may yet; -1: it has ended. */
static int hear(struct keeper *k) {
    char some[4096];
    ssize_t n = read(k->said, some, sizeof some);
    if (n < 0 && errno == EINTR)
        return 0;
    if (n <= 0)
        return -1;
    if (k->lines.len < 65536)
        buf_add(&k->lines, some, (size_t)n);
    return strstr(k->lines.data, " listening on ") != NULL;
}

/* Until the caller has gone, or the server has. */
static void watch(struct keeper *k) {
    bool told = false;
    struct pollfd p[] = {{.fd = k->sock, .events = POLLIN}, {.fd = k->said, .events = POLLIN}};
    for (;;) {
        if (poll(p, 2, -1) < 0)
            continue;
        if (p[0].revents)
            return;
        int heard = hear(k);
        if (heard < 0) {
            if (!told)
                tell(k, "!",
                     "the server that this process starts for itself did not start: it said why "
                     "above");
            return;
        }
        if (heard && !told) {
            AUTO_BUF url = BUF_INIT;
            buf_addf(&url, "unix:%s/http.sock", k->dir);
            tell(k, "", url.data);
            told = true;
        }
    }
}

static void end_server(struct keeper *k) {
    char rest[4096];
    if (k->pid <= 0)
        return;
    kill(k->pid, SIGTERM);
    for (ssize_t n; (n = read(k->said, rest, sizeof rest)) > 0 || (n < 0 && errno == EINTR);)
        continue;
    while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* ---- the keeper ---- */

/* SECURITY: nothing of the client's streams stays open here but stderr, and a Ctrl-C or a signal to
 * the caller's group is the caller's: it lets go of us. */
static void leave_caller(void) {
    AUTO_FD null = open("/dev/null", O_RDWR | O_CLOEXEC);
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    setsid();
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    dup2(null, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
}

static void keep(struct keeper *k) {
    struct err e;
    AUTO_FREE char *words = xmalloc(KEEPER_WORDS_MAX + 1);
    ssize_t n = recv(k->sock, words, KEEPER_WORDS_MAX, 0);
    if (n <= 0)
        return;
    words[n] = '\0';
    if (make_dir(k, &e) < 0 || serve(k, words, (size_t)n, &e) < 0)
        tell(k, "!", e.text);
    else
        watch(k);
    end_server(k);
    if (k->dir)
        rmtree(AT_FDCWD, k->dir);
}

int keeper_start(int *ret_fd, struct err *e) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, "socketpair");
    pid_t pid = fork();
    if (pid == 0) {
        struct keeper k = {.sock = pair[1], .pid = -1, .said = -1, .lines = BUF_INIT};
        close(pair[0]);
        leave_caller();
        keep(&k);
        _exit(0);
    }
    close(pair[1]);
    *ret_fd = pair[0];
    if (pid < 0) {
        fd_close(ret_fd);
        return err_sys(e, "fork");
    }
    return fd_set_cloexec(*ret_fd, 0, e);
}
