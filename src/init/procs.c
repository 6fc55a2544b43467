/* See procs.h. Theory of operation.
 *
 * An entry stays while its process lives or its listener is open: the listener hangs up when the
 * last process that came from it is gone, so until then there may be someone for SIGNAL_TREE to
 * find. Nobody is woken when a process ends; that is looked at when it matters.
 *
 * Who comes from whom: every kernel and command has a user namespace of its own, which nobody in it
 * can leave; parents and sessions tell for one that is not there any more to be looked at. A tree
 * is killed in two steps: first all in it are stopped, until a look at /proc finds no one who runs,
 * then all are killed. Whoever is stopped cannot fork, and stays the parent of its children. */

#include "init/procs.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SET_FLAGS    _IOW('!', 4, uint64_t) /* SECCOMP_IOCTL_NOTIF_SET_FLAGS */
#define SYNC_WAKE_UP 1ul

#define TREE_MAX   4096 /* processes looked at */
#define STOP_LOOKS 100  /* naps of 200 µs: for those that somebody keeps from stopping */

/* 0: it cannot be told, or is the one that we are in. */
static ino_t space_of(const char *pid) {
    char path[64];
    struct stat st, ours;
    snprintf(path, sizeof path, "/proc/%.16s/ns/user", pid);
    bool good = stat(path, &st) == 0 && stat("/proc/self/ns/user", &ours) == 0;
    return good && st.st_ino != ours.st_ino ? st.st_ino : 0;
}

static bool has_ended(int pidfd) {
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    return pidfd < 0 || poll(&p, 1, 0) > 0;
}

static void tidy(struct procs *p) {
    for (unsigned i = 0; i < p->top; i++) {
        struct proc *one = &p->all[i];
        if (!one->pid)
            continue;
        if (has_ended(one->pidfd))
            fd_close(&one->pidfd);
        if (one->pidfd < 0 && one->listener < 0)
            one->pid = 0;
    }
}

static bool is_alive(const struct proc *one) {
    return one->pid && one->pidfd >= 0 && !has_ended(one->pidfd);
}

unsigned procs_alive(const struct procs *p) {
    unsigned alive = 0;
    for (unsigned i = 0; i < p->top; i++)
        alive += is_alive(&p->all[i]);
    return alive;
}

bool procs_entered(const struct procs *p, pid_t pid) {
    for (unsigned i = 0; i < p->top; i++) {
        if (p->all[i].pid == pid && is_alive(&p->all[i]))
            return true;
    }
    return false;
}

bool procs_full(struct procs *p) {
    tidy(p);
    return procs_alive(p) >= PROCS_MAX;
}

/* A free entry; if there is none, that of a process which left others behind: refused calls of
 * those are answered by the kernel from now on. */
static struct proc *place(struct procs *p) {
    struct proc *left = NULL;
    tidy(p);
    for (unsigned i = 0; i < p->top; i++) {
        struct proc *one = &p->all[i];
        if (!one->pid)
            return one;
        if (one->pidfd < 0 && !left)
            left = one;
    }
    if (p->top < PROCS_MAX)
        return &p->all[p->top++];
    if (left)
        fd_close(&left->listener);
    return left;
}

static struct proc *find(struct procs *p, uint32_t number) {
    for (unsigned i = 0; i < p->top; i++) {
        if (p->all[i].pid && p->all[i].number == number)
            return &p->all[i];
    }
    return NULL;
}

/* Who asks and who answers take turns on one processor: waking another takes longer than an answer.
 */
static void take_turns(int listener) {
    ioctl(listener, SET_FLAGS, SYNC_WAKE_UP); /* kernel 6.6 */
}

void procs_add(struct procs *p, uint32_t number, pid_t pid, int listener) {
    struct proc *earlier = find(p, number);
    if (earlier) /* what that one left behind has no name any more */
        earlier->number = UINT32_MAX;
    struct proc *one = place(p);
    if (!one) {
        fd_close(&listener);
        return;
    }
    *one = (struct proc){.number = number, .pid = pid, .listener = listener};
    take_turns(listener);
    one->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    char text[16];
    snprintf(text, sizeof text, "%d", (int)pid);
    if (p->live)
        one->space = space_of(text);
}

pid_t procs_pid(const struct procs *p, uint32_t number) {
    for (unsigned i = 0; i < p->top; i++) {
        if (p->all[i].pid && p->all[i].number == number)
            return p->all[i].pid;
    }
    return 0;
}

uint32_t procs_number(const struct procs *p, pid_t pid) {
    char text[16];
    snprintf(text, sizeof text, "%d", (int)pid);
    ino_t space = p->live ? space_of(text) : 0;
    for (unsigned i = 0; i < p->top; i++) {
        const struct proc *one = &p->all[i];
        if (one->pid && (one->pid == pid || (space && one->space == space)))
            return one->number;
    }
    return 0;
}

/* ---- trees ---- */

struct node {
    pid_t pid, parent, session;
    ino_t space;
    bool running; /* neither stopped nor dead */
    bool dead;
    bool within;
};

struct look {
    struct node nodes[TREE_MAX]; /* by pid, rising: the order of /proc */
    unsigned n;
};

static bool read_node(const char *name, struct node *ret) {
    char path[64], text[1024], state;
    int parent, session;
    struct err e;
    snprintf(path, sizeof path, "/proc/%.16s/stat", name);
    const char *p =
        file_read_at(AT_FDCWD, path, text, sizeof text, &e) == 0 ? strrchr(text, ')') : NULL;
    if (!p || sscanf(p + 1, " %c %d %*d %d", &state, &parent, &session) != 3)
        return false;
    *ret = (struct node){.pid = (pid_t)strtol(name, NULL, 10), .parent = parent};
    ret->session = session;
    ret->space = space_of(name);
    ret->dead = state == 'Z' || state == 'X';
    ret->running = !ret->dead && state != 'T';
    return true;
}

static int by_pid(const void *a, const void *b) {
    const struct node *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static bool mark(struct look *l, struct node *one, const struct proc *root) {
    if (one->within)
        return false;
    const struct node key = {.pid = one->parent};
    const struct node *parent = bsearch(&key, l->nodes, l->n, sizeof key, by_pid);
    one->within = one->pid == root->pid || one->session == root->pid ||
                  (root->space && one->space == root->space) || (parent && parent->within);
    return one->within;
}

/* Children mostly have higher numbers than their parents, so one round marks all of them, and a
 * second one finds nothing more. */
static void look_at_tree(struct look *l, const struct proc *root) {
    DIR *d = opendir("/proc");
    l->n = 0;
    for (struct dirent *ent; d && l->n < TREE_MAX && (ent = readdir(d));) {
        if (ent->d_name[0] >= '1' && ent->d_name[0] <= '9' && strcmp(ent->d_name, "1") != 0)
            l->n += read_node(ent->d_name, &l->nodes[l->n]);
    }
    if (d)
        closedir(d);
    for (bool more = true; more;) {
        more = false;
        for (unsigned i = 0; i < l->n; i++)
            more |= mark(l, &l->nodes[i], root);
    }
}

static unsigned send_all(const struct look *l, int sig, bool only_running) {
    unsigned sent = 0;
    for (unsigned i = 0; i < l->n; i++) {
        const struct node *one = &l->nodes[i];
        if (one->within && !one->dead && (one->running || !only_running))
            sent += kill(one->pid, sig) == 0;
    }
    return sent;
}

static int signal_tree(const struct proc *root, int sig) {
    static struct look l;
    const struct timespec nap = {.tv_nsec = 200000};
    look_at_tree(&l, root);
    for (int i = 0; i < STOP_LOOKS && sig == SIGKILL && send_all(&l, SIGSTOP, true); i++) {
        nanosleep(&nap, NULL);
        look_at_tree(&l, root);
    }
    return send_all(&l, sig, false) ? 0 : ESRCH;
}

int procs_signal(struct procs *p, uint32_t number, uint32_t sig, uint32_t scope) {
    if (sig == 0 || sig > 31 || scope > SIGNAL_TREE)
        return EINVAL;
    tidy(p);
    const struct proc *one = find(p, number);
    if (!one)
        return ESRCH;
    if (scope == SIGNAL_TREE)
        return signal_tree(one, (int)sig);
    if (one->pidfd < 0)
        return ESRCH;
    long r = scope == SIGNAL_GROUP ? kill(-one->pid, (int)sig)
                                   : syscall(SYS_pidfd_send_signal, one->pidfd, sig, NULL, 0);
    return r < 0 ? errno : 0;
}
