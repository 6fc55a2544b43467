/* See kernel.h. The steps are in a fixed order, each relying on the ones before it; nothing here
 * allocates or takes a lock, since it runs between fork and the first Python instruction.
 *
 *   signals, session → cgroup → namespaces → descriptors → rlimits → ids, user namespace →
 *   capabilities → no_new_privs → Landlock → seccomp → hand-over of the listener
 *
 * The kernel gets a user namespace of its own two below the nursery's, in which only its own id
 * exists (as 1000): even where all sandboxes share one id outside, no capability of it reaches
 * init. */

#include "zygote/kernel.h"

#include "base/fd.h"
#include "sandbox/caps.h"
#include "sandbox/cgroup_attach.h"
#include "sandbox/cores.h"
#include "sandbox/landlock.h"
#include "sandbox/seccomp_load.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int step_session(struct err *e) {
    sigset_t none;
    sigemptyset(&none);
    if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
        return err_sys(e, "unblock signals");
    return setsid() < 0 ? err_sys(e, "setsid") : 0;
}

static int step_namespaces(const struct kernel_entry *k, struct err *e) {
    if (setns(k->fds[KERNEL_INIT], CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
        return err_sys(e, "enter the sandbox");
    /* A fresh cgroup namespace, rooted in the group just joined: inside, everything is at "/". */
    if (unshare(CLONE_NEWCGROUP) < 0)
        return err_sys(e, "make a cgroup namespace");
    return chdir("/workspace") < 0 ? err_sys(e, "chdir /workspace") : 0;
}

/* Moves what stays out of the way first, so that no target number is one still needed. */
static int step_descriptors(struct kernel_entry *k, struct err *e) {
    static const int kept[] = {KERNEL_CTL, KERNEL_HAND, KERNEL_LANDLOCK};
    for (int i = 0; i < 3; i++) {
        int fd = fcntl(k->fds[kept[i]], F_DUPFD_CLOEXEC, KERNEL_CTL_FD + i);
        if (fd < 0)
            return err_sys(e, "move a descriptor");
        k->fds[kept[i]] = fd;
    }
    int proc = fcntl(k->proc_dir, F_DUPFD_CLOEXEC, KERNEL_CTL_FD + 3);
    if (proc < 0)
        return err_sys(e, "move a descriptor");
    k->proc_dir = proc;
    int std[3];
    for (int i = 0; i < 3; i++) {
        std[i] = fcntl(k->fds[KERNEL_STDIN + i], F_DUPFD_CLOEXEC, KERNEL_CTL_FD + 10);
        if (std[i] < 0)
            return err_sys(e, "move a descriptor");
    }
    for (int i = 0; i < 3; i++) {
        if (dup2(std[i], i) < 0)
            return err_sys(e, "dup2");
    }
    if (close_range(3, KERNEL_CTL_FD - 1, 0) < 0 || close_range(KERNEL_CTL_FD + 4, ~0u, 0) < 0)
        return err_sys(e, "close_range");
    return 0;
}

static int step_rlimits(struct err *e) {
    /* Locked pages of a file of /usr cannot be taken from a neighbour who has to pay for them. */
    const struct rlimit memlock = {64 << 10, 64 << 10}, queue = {256 << 10, 256 << 10};
    const struct rlimit signals = {256, 256}, none = {0, 0};
    if (cores_forbid(e) < 0)
        return -1;
    setrlimit(RLIMIT_MEMLOCK, &memlock);
    setrlimit(RLIMIT_MSGQUEUE, &queue);
    /* These are counted for everyone above in the tree of user namespaces too: what a sandbox holds
     * is missing to the host's root, whose timers need queued signals. */
    setrlimit(RLIMIT_SIGPENDING, &signals);
    setrlimit(RLIMIT_RTPRIO, &none);
    setrlimit(RLIMIT_NICE, &none);
    return 0;
}

static int write_map(int proc_dir, const char *name, const char *text, struct err *e) {
    char path[32];
    snprintf(path, sizeof path, "self/%s", name);
    return file_write_at(proc_dir, path, text, e);
}

static int write_maps(int proc_dir, const char *map, struct err *e) {
    if (write_map(proc_dir, "uid_map", map, e) < 0 || write_map(proc_dir, "gid_map", map, e) < 0)
        return err_wrap(e, "id map");
    return 0;
}

static int step_ids(const struct kernel_entry *k, struct err *e) {
    char map[32];
    uint32_t id = k->uid;
    if (setgroups(0, NULL) < 0 && errno != EPERM) /* denied where there is a single id */
        return err_sys(e, "setgroups");
    if (setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
        return err_sys(e, "become uid %u", id);
    prctl(PR_SET_DUMPABLE, 1); /* else our own /proc entries are not ours */
    /* The map of a namespace tells the id in the one above, and that is the number of the slot; the
     * map of the second tells nothing. It inherits that setgroups is denied. */
    snprintf(map, sizeof map, "1000 %u 1", id);
    if (unshare(CLONE_NEWUSER) < 0)
        return err_sys(e, "make a user namespace");
    if (write_map(k->proc_dir, "setgroups", "deny", e) < 0)
        return err_wrap(e, "id map");
    if (write_maps(k->proc_dir, map, e) < 0)
        return -1;
    if (unshare(CLONE_NEWUSER) < 0)
        return err_sys(e, "make a second user namespace");
    return write_maps(k->proc_dir, "1000 1000 1", e);
}

static int step_filters(struct kernel_entry *k, int *ret_listener, struct err *e) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(e, "no_new_privs");
    struct stat st;
    bool ruleset = fstat(k->fds[KERNEL_LANDLOCK], &st) == 0 && !S_ISCHR(st.st_mode);
    if (ruleset && landlock_enter(k->fds[KERNEL_LANDLOCK], e) < 0)
        return -1;
    return seccomp_enter(k->filter, k->filter_len, ret_listener, e);
}

static int step_hand_over(struct kernel_entry *k, int listener, struct err *e) {
    struct wire_out o;
    k_hand_put(&o, &(struct k_hand){k->number, (uint32_t)getpid(), listener});
    enum wire_sent sent = wire_send(k->fds[KERNEL_HAND], &o, e);
    close(listener);
    if (close_range(KERNEL_CTL_FD + 1, ~0u, 0) < 0)
        return err_sys(e, "close_range");
    /* close_range spares 3 … 999: the listener may have been opened there, and was closed above */
    return sent == WIRE_SENT ? 0 : err_wrap(e, "hand over the listener");
}

int kernel_enter(struct kernel_entry *k, struct err *e) {
    int listener = -1;
    if (step_session(e) < 0 || cgroup_attach(k->procs, k->nprocs, e) < 0 ||
        step_namespaces(k, e) < 0 || step_descriptors(k, e) < 0 || step_rlimits(e) < 0 ||
        step_ids(k, e) < 0 || caps_drop_all(e) < 0 || step_filters(k, &listener, e) < 0)
        return -1;
    return step_hand_over(k, listener, e);
}

static int limit(int what, uint64_t value, const char *name, struct err *e) {
    struct rlimit l;
    if (getrlimit((__rlimit_resource_t)what, &l) == 0 && l.rlim_max < value)
        value = l.rlim_max; /* CAP_SYS_RESOURCE is missing: a hard limit is never raised */
    l.rlim_cur = l.rlim_max = value;
    if (setrlimit((__rlimit_resource_t)what, &l) < 0)
        return err_sys(e, "setrlimit %s", name);
    return 0;
}

int kernel_limit(const struct limits *l, struct err *e) {
    if (l->open_files && limit(RLIMIT_NOFILE, l->open_files, "nofile", e) < 0)
        return -1;
    /* A backstop, a second late: the server watches the whole group. */
    if (l->cpu_seconds && limit(RLIMIT_CPU, (uint64_t)l->cpu_seconds + 1, "cpu", e) < 0)
        return -1;
    return l->pids ? limit(RLIMIT_NPROC, l->pids, "nproc", e) : 0;
}
