/* See probe_trial.h.
 *
 * Theory of operation: nothing is concluded from version numbers or files where it can be tried.
 * Two children do it at the same time and write what they found into a shared page:
 *
 *   walls    unshares a user namespace, has its ids mapped by us (a socket pair carries the turns),
 *            unshares the other namespaces one by one, forks PID 1 of the new pid namespace (which
 *            mounts a proc), and last puts a system call filter and a listener on itself.
 *   groups   opens and closes a control group root under its own pid, so that it can never meet the
 *            groups of the process that asked.
 *
 * They note step and errno only; probe.c makes the words, outside, where sysctls show the values
 * that apply (see diagnose.h). A child that hangs or is killed leaves its layers untried, which is
 * missing. */

#include "sandbox/probe_trial.h"

#include "base/fd.h"
#include "sandbox/idmap_write.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEADLINE_MS = 10000 }; /* for a child that hangs; making a network namespace can take long */

/* ------------------------------------------------------------------ in the children */

static void note(struct probe_trials *t, enum probe_layer l, enum diagnose_step step, int result) {
    t->layers[l] =
        (struct probe_trial){.tried = true, .errnum = result < 0 ? errno : 0, .step = step};
}

static void die_with_parent(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* Tells the parent that the namespace is there and waits until its ids are mapped. */
static bool wait_for_ids(int sock) {
    char byte = 'u';
    return send(sock, &byte, 1, MSG_NOSIGNAL) == 1 && recv(sock, &byte, 1, 0) == 1 && byte == 'm';
}

/* As the nursery does it. With a single id of an ordinary user setgroups is denied, and needless.
 */
static int become_root_inside(const struct idmap *ids) {
    if (!(ids->single && geteuid() != 0))
        (void)!setgroups(0, NULL);
    if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return -1;
    die_with_parent(); /* the change of uid took it back */
    return 0;
}

/* Mount namespace: private, so that what PID 1 mounts below stays in it, and the calls that ours
 * are made with. mount_setattr without arguments is EINVAL where it exists. */
static void try_mount_ns(struct probe_trials *t) {
    if (unshare(CLONE_NEWNS) < 0) {
        note(t, PROBE_mount_ns, DIAGNOSE_CLONE_MOUNT, -1);
        return;
    }
    int r = mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
    if (r == 0) {
        r = (int)syscall(SYS_mount_setattr, -1, "", 0, NULL, 0);
        r = r < 0 && errno == EINVAL ? 0 : -1;
    }
    note(t, PROBE_mount_ns, DIAGNOSE_MOUNT_BIND, r);
}

bool probe_trial_works(const struct probe_trials *t, enum probe_layer l) {
    return t->layers[l].tried && t->layers[l].errnum == 0;
}

/* PID 1 of the new pid namespace; mounts only when the mount namespace is surely our own. */
static void try_proc(struct probe_trials *t) {
    die_with_parent();
    note(t, PROBE_pid_ns, DIAGNOSE_CLONE_PID, 0);
    if (probe_trial_works(t, PROBE_mount_ns))
        note(t, PROBE_proc, DIAGNOSE_MOUNT_PROC,
             mount("proc", "/proc", "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                   "hidepid=2"));
    _exit(0);
}

static pid_t try_pid_ns(struct probe_trials *t) {
    if (unshare(CLONE_NEWPID) < 0) {
        note(t, PROBE_pid_ns, DIAGNOSE_CLONE_PID, -1);
        return -1;
    }
    pid_t pid = fork();
    if (pid == 0)
        try_proc(t);
    if (pid < 0)
        note(t, PROBE_pid_ns, DIAGNOSE_FORK, -1);
    return pid;
}

static void try_filter(struct probe_trials *t) {
    struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = 1, .filter = allow};
    note(t, PROBE_no_new_privs, DIAGNOSE_SECCOMP_LOAD, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    note(t, PROBE_seccomp, DIAGNOSE_SECCOMP_LOAD,
         (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
    note(t, PROBE_notify, DIAGNOSE_SECCOMP_LISTEN,
         (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                      &program));
}

/* Only in a network namespace that is surely our own. */
static void try_egress(struct probe_trials *t) {
    if (!probe_trial_works(t, PROBE_net_ns))
        return;
    egress_try(&t->egress);
    t->layers[PROBE_egress].tried = true;
    t->layers[PROBE_egress].errnum = t->egress.fact ? t->egress.errnum : 0;
}

static void walls_main(struct probe_trials *t, const struct idmap *ids, int sock) {
    static const struct {
        enum probe_layer layer;
        int flag;
        enum diagnose_step step;
    } plain[] = {
        {PROBE_ipc_ns, CLONE_NEWIPC, DIAGNOSE_CLONE_IPC},
        {PROBE_uts_ns, CLONE_NEWUTS, DIAGNOSE_CLONE_UTS},
        {PROBE_cgroup_ns, CLONE_NEWCGROUP, DIAGNOSE_CLONE_CGROUP},
        {PROBE_net_ns, CLONE_NEWNET, DIAGNOSE_CLONE_NET},
    };
    die_with_parent();
    int made = unshare(CLONE_NEWUSER);
    note(t, PROBE_user_ns, DIAGNOSE_CLONE_USER, made);
    if (made == 0 && wait_for_ids(sock))
        note(t, PROBE_ids, DIAGNOSE_WRITE_UID_MAP, become_root_inside(ids));
    pid_t pid1 = -1;
    if (made == 0 || geteuid() == 0) {
        try_mount_ns(t);
        pid1 = try_pid_ns(t);
        for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
            note(t, plain[i].layer, plain[i].step, unshare(plain[i].flag));
        try_egress(t);
    }
    try_filter(t);
    if (pid1 > 0)
        while (waitpid(pid1, NULL, 0) < 0 && errno == EINTR)
            ;
    _exit(0);
}

static void tell_groups(struct probe_trials *t, const struct cgroup_root *root) {
    struct probe_result r = {.state = root->kind == CGROUP_NONE ? PROBE_WEAK : PROBE_OK};
    if (root->kind == CGROUP_NONE) {
        snprintf(r.how, sizeof r.how, "none usable: limits are watched, not enforced");
        snprintf(r.fix, sizeof r.fix, "%s", root->why);
    } else {
        snprintf(r.how, sizeof r.how, "%s, at %.140s", root->kind == CGROUP_V2 ? "v2" : "v1",
                 root->where);
    }
    t->cgroup = r;
    t->layers[PROBE_cgroup].tried = true;
}

static void groups_main(struct probe_trials *t, enum cgroup_kind want) {
    die_with_parent();
    struct cgroup_root root;
    struct err e;
    if (cgroup_root_open(&root, want, &e) < 0) {
        diagnose(&e, DIAGNOSE_CGROUP_WRITE);
        root = (struct cgroup_root){.kind = CGROUP_NONE};
        snprintf(root.why, sizeof root.why, "%.*s", (int)sizeof root.why - 1, e.text);
    }
    tell_groups(t, &root);
    if (root.kind != CGROUP_NONE)
        cgroup_root_close(&root);
    _exit(0);
}

/* ------------------------------------------------------------------ outside */

/* Ends the child if it is not done by itself; returns its wait status. */
static int reap(pid_t pid, bool hangs) {
    int status = 0;
    if (hangs)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

/* True when there is something to read, or the other side is gone. */
static bool wait_readable(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;
    while ((n = poll(&p, 1, DEADLINE_MS)) < 0 && errno == EINTR)
        ;
    return n == 1;
}

/* Plays our part for the walls child: maps its ids when it asks. */
static void serve_walls(pid_t pid, int sock, const struct idmap *ids, struct err *map_err) {
    char byte = 0;
    bool quiet = !wait_readable(sock);
    if (!quiet && recv(sock, &byte, 1, 0) == 1) {
        byte = idmap_write(ids, pid, map_err) == 0 ? 'm' : 'x';
        if (send(sock, &byte, 1, MSG_NOSIGNAL) == 1)
            quiet = !wait_readable(sock); /* its end */
    }
    reap(pid, quiet);
}

void probe_trials_run(struct probe_trials *t, const struct probe_request *q, struct err *map_err) {
    int walls[2], groups[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, walls) < 0)
        return;
    AUTO_FD walls_ours = walls[0];
    AUTO_FD walls_theirs = walls[1];
    if (pipe2(groups, O_CLOEXEC) < 0)
        return;
    AUTO_FD groups_ours = groups[0];
    AUTO_FD groups_theirs = groups[1];

    pid_t walls_pid = fork();
    if (walls_pid == 0) {
        fd_close(&walls_ours);
        fd_close(&groups_theirs);
        walls_main(t, q->ids, walls_theirs);
    }
    fd_close(&walls_theirs);
    pid_t groups_pid = q->have ? 0 : fork();
    if (groups_pid == 0 && !q->have)
        groups_main(t, q->want);
    if (q->have)
        tell_groups(t, q->have);
    fd_close(&groups_theirs);
    if (walls_pid > 0)
        serve_walls(walls_pid, walls_ours, q->ids, map_err);
    if (groups_pid > 0)
        reap(groups_pid, !wait_readable(groups_ours));
}
