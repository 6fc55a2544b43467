/* See birth.h. Stages, in processes:
 *
 *   birth     (child of the warden)  a mount namespace in which the root is built. Started as root
 * it does so with the host's root rights (paths under a private home can be shown); started as a
 * user it first enters a user namespace, whose ids a forked helper maps from outside. nursery
 * cloned with CLONE_PARENT, so that it is the warden's child too, into new user, pid, mount, net,
 * ipc, uts and cgroup namespaces. The mounts it inherits are locked. It waits for its id map, then
 * executes this program again: a clean address space that belongs to the new user namespace, in
 * which init can be undumpable and still be entered by a zygote.
 *
 * birth exits as soon as the nursery is mapped. */

#include "nursery/birth.h"

#include "base/fd.h"
#include "nursery/mounts.h"
#include "sandbox/idmap_write.h"
#include "sandbox/root.h"
#include "wire/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_BINDS 64

static _Noreturn void fail(int chan, const struct err *why) {
    struct wire_out o;
    struct err e;
    n_state_put(&o, &(struct n_state){.state = PROFILE_BROKEN, .what = why->text});
    wire_send(chan, &o, &e);
    _exit(1);
}

/* In the helper: waits until the namespace is there. Its failure is a struct err on `why`, never a
 * word on stderr: it may outlive a birth that was called off. */
static _Noreturn void write_map_for(const struct idmap *ids, pid_t pid, int go, int why) {
    struct err e;
    char c;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (read(go, &c, 1) != 1)
        _exit(1);
    if (idmap_write(ids, pid, &e) == 0)
        _exit(0);
    (void)!write(why, &e, sizeof e);
    _exit(1);
}

/* Enters a user namespace whose map a forked helper writes from outside. */
static int enter_user_ns(const struct idmap *ids, struct err *e) {
    int go[2], why[2];
    if (pipe2(go, O_CLOEXEC) < 0 || pipe2(why, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    pid_t self = getpid(), helper = fork();
    if (helper < 0)
        return err_sys(e, "fork");
    if (helper == 0) {
        close(go[1]);
        write_map_for(ids, self, go[0], why[1]);
    }
    close(go[0]);
    close(why[1]);
    int r = unshare(CLONE_NEWUSER) < 0 ? err_sys(e, "make a user namespace") : 0;
    if (r == 0 && write(go[1], "x", 1) != 1)
        r = err_sys(e, "pipe");
    close(go[1]);
    int status = 0;
    while (waitpid(helper, &status, 0) < 0 && errno == EINTR)
        ;
    if (r == 0 && status != 0) {
        if (read(why[0], e, sizeof *e) != (ssize_t)sizeof *e)
            err_set(e, EPERM, "its writer ended with status %d", status);
        r = err_wrap(e, "the id map of the user namespace");
    }
    close(why[0]);
    return r;
}

/* The directory above bin/ of an interpreter that is not the system's: a venv's, or a build's. */
static void add_prefix(char **binds, unsigned *n, const char *python) {
    char prefix[PATH_MAX];
    snprintf(prefix, sizeof prefix, "%s", python);
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(prefix, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
    if (prefix[0] == '\0' || strcmp(prefix, "/usr") == 0 || *n == MAX_BINDS)
        return;
    for (unsigned i = 0; i < *n; i++) {
        if (strcmp(binds[i], prefix) == 0)
            return;
    }
    binds[(*n)++] = xstrdup(prefix);
}

static int build_root(const struct config *c, const struct config_profile *p, struct err *e) {
    char *binds[MAX_BINDS];
    unsigned n = 0;
    for (unsigned i = 0; i < p->sites.n && n < MAX_BINDS; i++)
        binds[n++] = p->sites.items[i];
    for (unsigned i = 0; i < p->binds.n && n < MAX_BINDS; i++)
        binds[n++] = p->binds.items[i];
    add_prefix(binds, &n, p->python);
    char real[PATH_MAX];
    if (!realpath(p->python, real))
        return err_sys(e, "interpreter %s", p->python);
    add_prefix(binds, &n, real);
    char cell[PATH_MAX];
    snprintf(cell, sizeof cell, "%s/cell", c->pylib);
    struct mounts mounts;
    if (mounts_read(p, &mounts, e) < 0)
        return -1;
    struct root_plan plan = {.binds = (const char *const *)binds,
                             .nbinds = n,
                             .libexec = c->libexec,
                             .pylib = cell,
                             .python = p->python,
                             .mounts = mounts.items,
                             .nmounts = mounts.n,
                             .allowed = mounts.allowed,
                             .nallowed = mounts.nallowed,
                             .wheels = c->wheels,
                             .trees = c->http.trees_dir,
                             .memory_mb = config_born(c, p).memory_mb};
    return root_build(&plan, e);
}

static _Noreturn void second_stage(int go, int exe, unsigned profile, int chan, int config_fd) {
    char c, index[16];
    if (read(go, &c, 1) != 1)
        _exit(1);
    /* The user namespace is mapped: become its root, drop every group of the host. */
    if ((setgroups(0, NULL) < 0 && errno != EPERM) || setresgid(0, 0, 0) < 0 ||
        setresuid(0, 0, 0) < 0)
        _exit(1);
    snprintf(index, sizeof index, "%u", profile);
    int a = fcntl(chan, F_DUPFD, 10), b = fcntl(config_fd, F_DUPFD, 10);
    int x = fcntl(exe, F_DUPFD_CLOEXEC, 10);
    if (a < 0 || b < 0 || x < 0 || dup2(a, NURSERY_CHAN) < 0 || dup2(b, NURSERY_CONFIG) < 0)
        _exit(1);
    close(a);
    close(b);
    char *const argv[] = {(char *)"cloche-nursery", (char *)"nurse", index, NULL};
    char *const envp[] = {(char *)"PATH=/usr/bin:/bin", (char *)"LANG=C.UTF-8", NULL};
    execveat(x, "", argv, envp, AT_EMPTY_PATH);
    _exit(1);
}

static int bear(const struct idmap *ids, unsigned profile, int chan, int config_fd, int exe,
                struct err *e) {
    int go[2];
    if (pipe2(go, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    unsigned long flags = CLONE_PARENT | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET |
                          CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
    pid_t pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
    if (pid < 0)
        return err_sys(e, "make the nursery's namespaces");
    if (pid == 0) {
        close(go[1]);
        second_stage(go[0], exe, profile, chan, config_fd);
    }
    struct wire_out o;
    n_born_put(&o, &(struct n_born){.pid = (uint32_t)pid});
    if (wire_send(chan, &o, e) != WIRE_SENT || idmap_write(ids, pid, e) < 0) {
        kill(pid, SIGKILL);
        return err_wrap(e, "id map");
    }
    return write(go[1], "x", 1) == 1 ? 0 : err_sys(e, "pipe");
}

_Noreturn void birth(const struct config *c, unsigned profile, const struct idmap *ids, int chan,
                     int config_fd) {
    struct err e;
    AUTO_FD exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (exe < 0) {
        err_sys(&e, "open /proc/self/exe");
        fail(chan, &e);
    }
    umask(022);
    bool root = geteuid() == 0;
    if (!root && enter_user_ns(ids, &e) < 0)
        fail(chan, &e);
    if (unshare(CLONE_NEWNS) < 0) {
        err_sys(&e, "make a mount namespace");
        fail(chan, &e);
    }
    if (build_root(c, &c->profiles[profile], &e) < 0)
        fail(chan, &e);
    /* Changing ids made us undumpable, and so our child's id map files the host root's. */
    prctl(PR_SET_DUMPABLE, 1);
    /* Inside our own user namespace the ids already count from 0. */
    struct idmap inner = *ids;
    if (!root)
        inner = (struct idmap){.uid = 0, .gid = 0, .count = ids->count, .single = ids->single};
    if (bear(&inner, profile, chan, config_fd, exe, &e) < 0)
        fail(chan, &e);
    _exit(0);
}
