/* See diagnose.h.
 *
 * Theory of operation: a table of rules (steps, errno, function), first match wins. A function
 * looks at one fact of the machine; when that fact explains the failure it fills in cause and fix
 * and returns true, else the next rule is asked. Rules about a definite setting stand before those
 * that infer. */

#include "sandbox/diagnose.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define BIT(step) (1u << DIAGNOSE_##step)
#define CLONES                                                                                     \
    (BIT(CLONE_USER) | BIT(CLONE_PID) | BIT(CLONE_MOUNT) | BIT(CLONE_NET) | BIT(CLONE_IPC) |       \
     BIT(CLONE_UTS) | BIT(CLONE_CGROUP))
#define MOUNTS (BIT(MOUNT_PROC) | BIT(MOUNT_BIND))

#define CAUSE(d, ...) snprintf((d)->cause, sizeof(d)->cause, __VA_ARGS__)
#define FIX(d, ...)   snprintf((d)->fix, sizeof(d)->fix, __VA_ARGS__)

/* What a namespace is called in sysctl user.max_*_namespaces and in the kernel's configuration. */
static const struct {
    const char *limit, *config;
} kinds[] = {
    [DIAGNOSE_CLONE_USER] = {"user", "CONFIG_USER_NS"},
    [DIAGNOSE_CLONE_PID] = {"pid", "CONFIG_PID_NS"},
    [DIAGNOSE_CLONE_MOUNT] = {"mnt", "CONFIG_NAMESPACES"},
    [DIAGNOSE_CLONE_NET] = {"net", "CONFIG_NET_NS"},
    [DIAGNOSE_CLONE_IPC] = {"ipc", "CONFIG_IPC_NS"},
    [DIAGNOSE_CLONE_UTS] = {"uts", "CONFIG_UTS_NS"},
    [DIAGNOSE_CLONE_CGROUP] = {"cgroup", "CONFIG_CGROUPS"},
};

static bool read_text(const char *path, char *out, size_t cap) {
    struct err ignored;
    return file_read_at(AT_FDCWD, path, out, cap, &ignored) == 0;
}

/* The number in a small file; "max" is the largest there is. */
static bool read_number(const char *path, long long *ret) {
    char text[64];
    if (!read_text(path, text, sizeof text))
        return false;
    if (strncmp(text, "max", 3) == 0) {
        *ret = LLONG_MAX;
        return true;
    }
    char *end;
    *ret = strtoll(text, &end, 10);
    return end != text;
}

const char *diagnose_container(void) {
    if (getenv("KUBERNETES_SERVICE_HOST"))
        return "kubernetes";
    if (access("/run/.containerenv", F_OK) == 0)
        return "podman";
    if (access("/.dockerenv", F_OK) == 0)
        return "docker";
    return getenv("container") ? "container" : "";
}

static bool in_container(const char *kind) {
    return strcmp(diagnose_container(), kind) == 0;
}

/* Settings that are the whole machine's cannot be changed from inside a container. */
static const char *where_to_set(void) {
    return *diagnose_container() ? "on the host" : "as root";
}

static bool userns_clone_off(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    long long v;
    if (geteuid() == 0 || !read_number("/proc/sys/kernel/unprivileged_userns_clone", &v) || v != 0)
        return false;
    CAUSE(d, "kernel.unprivileged_userns_clone is 0: only root may make user namespaces");
    FIX(d, "%s: sysctl -w kernel.unprivileged_userns_clone=1", where_to_set());
    return true;
}

/* Ubuntu 23.10 and later: the namespace is made, and every capability in it refused. */
static bool apparmor_restricts(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    long long v;
    if (geteuid() == 0 ||
        !read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", &v) || v == 0)
        return false;
    CAUSE(d, "AppArmor takes the capabilities from the user namespaces of ordinary users");
    FIX(d, "%s: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0", where_to_set());
    return true;
}

static bool namespace_limit(enum diagnose_step step, struct diagnosis *d) {
    char path[80];
    long long v;
    const char *kind = kinds[step].limit;
    snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", kind);
    if (!read_number(path, &v)) {
        CAUSE(d, "the limit user.max_%s_namespaces is reached", kind);
        v = 0;
    } else if (v == 0) {
        CAUSE(d, "user.max_%s_namespaces is 0", kind);
    } else {
        CAUSE(d, "the limit of %s namespaces is reached: user.max_%s_namespaces is %lld here", kind,
              kind, v);
    }
    /* A large value here means that the limit is that of a namespace further out. */
    FIX(d, "%s: sysctl -w user.max_%s_namespaces=%d", v < 1024 ? "as root" : "on the host", kind,
        v < 16384 || v > INT_MAX / 2 ? 16384 : (int)v * 2);
    return true;
}

/* Root can compare with process 1, if that lives in our mount namespace. */
static bool root_differs_from_init(void) {
    struct statx own, init, own_ns, init_ns;
    const unsigned want = STATX_INO | STATX_MNT_ID;
    if (statx(AT_FDCWD, "/proc/self/ns/mnt", 0, want, &own_ns) < 0 ||
        statx(AT_FDCWD, "/proc/1/ns/mnt", 0, want, &init_ns) < 0 ||
        own_ns.stx_ino != init_ns.stx_ino)
        return false;
    if (statx(AT_FDCWD, "/", 0, want, &own) < 0 || statx(AT_FDCWD, "/proc/1/root/", 0, want, &init))
        return false;
    return own.stx_ino != init.stx_ino || own.stx_mnt_id != init.stx_mnt_id;
}

/* Anybody can see that nothing is mounted at "/", as in a chroot to a plain directory. */
static bool nothing_at_root(void) {
    char text[65536];
    if (!read_text("/proc/self/mountinfo", text, sizeof text))
        return false;
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        char point[4];
        if (sscanf(line, "%*d %*d %*s %*s %3s", point) == 1 && strcmp(point, "/") == 0)
            return false;
    }
    return true;
}

static bool in_chroot(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    if (!root_differs_from_init() && !nothing_at_root())
        return false;
    CAUSE(d, "we run in a chroot, where the kernel makes no user namespace");
    FIX(d, "start outside of the chroot, or enter it with pivot_root (for instance: bwrap --bind "
           "DIR / --proc /proc --dev /dev COMMAND)");
    return true;
}

static bool seccomp_confined(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    char text[8192];
    if (!read_text("/proc/self/status", text, sizeof text) || !strstr(text, "\nSeccomp:\t2"))
        return false;
    CAUSE(d, "a system call filter is on us already (Seccomp: 2 in /proc/self/status)");
    if (in_container("docker") || in_container("podman"))
        FIX(d, "%s run --security-opt seccomp=unconfined", diagnose_container());
    else if (in_container("kubernetes"))
        FIX(d, "in the pod: securityContext: {seccompProfile: {type: Unconfined}}");
    else
        FIX(d, "start without that filter (systemd: no SystemCallFilter= and "
               "RestrictNamespaces=no)");
    return true;
}

static bool apparmor_confined(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    char text[256];
    if (!read_text("/proc/self/attr/current", text, sizeof text) || !strstr(text, "(enforce)"))
        return false;
    text[strcspn(text, " \n")] = '\0';
    CAUSE(d, "the AppArmor profile %.64s refuses it", text);
    if (in_container("docker") || in_container("podman"))
        FIX(d, "%s run --security-opt apparmor=unconfined", diagnose_container());
    else if (in_container("kubernetes"))
        FIX(d, "in the pod: securityContext: {appArmorProfile: {type: Unconfined}}");
    else
        FIX(d, "allow userns and mount in that profile, or: aa-complain %.64s", text);
    return true;
}

static bool kernel_lacks(enum diagnose_step step, struct diagnosis *d) {
    CAUSE(d, "this kernel has no %s namespaces", kinds[step].limit);
    FIX(d, "a kernel with %s=y", kinds[step].config);
    return true;
}

/* What is left for root: a chroot that the rule above could not see, or a security module. */
static bool user_ns_forbidden(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    CAUSE(d, "a chroot or a security module forbids user namespaces");
    FIX(d, "start outside of any chroot; `dmesg | grep -i denied` names a security module's rule");
    return true;
}

static bool no_proc(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    if (access("/proc/self/status", F_OK) == 0)
        return false;
    CAUSE(d, "no /proc is mounted here");
    FIX(d, "mount -t proc proc /proc (bwrap: --proc /proc)");
    return true;
}

/* A mount point below /proc, other than the usual one for foreign binaries, hides a part of it;
 * then the kernel gives no new proc to a user namespace (mount_too_revealing). */
static bool proc_masked(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    char text[65536], first[48] = "";
    unsigned n = 0;
    if (!read_text("/proc/self/mountinfo", text, sizeof text))
        return false;
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        char point[48];
        if (sscanf(line, "%*d %*d %*s %*s %47s", point) != 1 || strncmp(point, "/proc/", 6) != 0 ||
            strcmp(point, "/proc/sys/fs/binfmt_misc") == 0)
            continue;
        if (n++ == 0)
            memcpy(first, point, sizeof first);
    }
    if (n == 0)
        return false;
    CAUSE(d, "%u parts of /proc are masked by mounts (%s first), so no new one may be made", n,
          first);
    if (in_container("docker"))
        FIX(d, "docker run --security-opt systempaths=unconfined");
    else if (in_container("podman"))
        FIX(d, "podman run --security-opt unmask=ALL");
    else if (in_container("kubernetes"))
        FIX(d, "in the pod: securityContext: {procMount: Unmasked} with hostUsers: false");
    else
        FIX(d, "start where nothing is mounted below /proc (systemd: ProtectKernelTunables=no, "
               "ProtectKernelLogs=no, ProtectProc=default)");
    return true;
}

static bool proc_read_only(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    CAUSE(d, "/proc is mounted read-only, so no id map can be written");
    FIX(d, "as root: mount -o remount,rw /proc");
    return true;
}

static bool mount_calls_missing(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    CAUSE(d, "this kernel has no mount_setattr()");
    FIX(d, "Linux 5.12 or newer");
    return true;
}

static bool map_refused(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    CAUSE(d, "the kernel did not take the ids: we lack CAP_SETUID or CAP_SETGID, or have not those "
             "ids ourselves (/proc/self/uid_map)");
    FIX(d, "give the container both capabilities, and ids in /etc/subuid and /etc/subgid that its "
           "own id map holds");
    return true;
}

static bool path_unreachable(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    CAUSE(d, "root inside is an ordinary user outside and may not enter that path");
    FIX(d, "chmod o+rx on each directory of that path");
    return true;
}

static bool seccomp_absent(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    if (access("/proc/sys/kernel/seccomp/actions_avail", F_OK) == 0)
        return false;
    CAUSE(d, "this kernel has no system call filters");
    FIX(d, "a kernel with CONFIG_SECCOMP_FILTER=y");
    return true;
}

static bool listener_unknown(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    CAUSE(d, "this kernel has no seccomp user notification");
    FIX(d, "Linux 5.0 or newer");
    return true;
}

static bool listener_taken(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    CAUSE(d, "whoever started us listens to our system calls already, and there can be only one");
    FIX(d, "start outside of that container, or with its system call interception off (LXC, Incus: "
           "security.syscalls.intercept.*=false)");
    return true;
}

static bool cgroup_read_only(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    CAUSE(d, "the control groups are mounted read-only");
    if (in_container("docker"))
        FIX(d, "docker run --cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup:rw");
    else if (in_container("podman"))
        FIX(d, "podman run --security-opt unmask=/sys/fs/cgroup");
    else
        FIX(d, "as root: mount -o remount,rw /sys/fs/cgroup");
    return true;
}

static bool cgroup_not_ours(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    CAUSE(d, "our control group is not delegated to us");
    if (geteuid() == 0)
        FIX(d, "start as a systemd service with Delegate=yes");
    else
        FIX(d,
            "systemd-run --user --scope -p Delegate=yes COMMAND, or a service with Delegate=yes");
    return true;
}

static bool cgroup_occupied(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    CAUSE(d, "our control group holds processes beside its children");
    FIX(d, "start in a control group of its own (systemd: Delegate=yes, DelegateSubgroup=warden)");
    return true;
}

/* Climbs from our own group to the root and names the first one that is full. */
static bool pids_group_full(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    char text[4096], dir[600], path[640], own[512] = "";
    const char *base = "/sys/fs/cgroup/pids", *line;
    if (!read_text("/proc/self/cgroup", text, sizeof text))
        return false;
    if ((line = strstr(text, ":pids:")))
        line += strlen(":pids:");
    else if ((line = strstr(text, "0::"))) {
        line += strlen("0::");
        base = "/sys/fs/cgroup";
    } else
        return false;
    snprintf(own, sizeof own, "%.*s", (int)strcspn(line, "\n"), line);
    for (;;) {
        long long now, max;
        snprintf(dir, sizeof dir, "%s%s", base, own);
        snprintf(path, sizeof path, "%s/pids.max", dir);
        bool known = read_number(path, &max);
        snprintf(path, sizeof path, "%s/pids.current", dir);
        if (known && read_number(path, &now) && now >= max - 1) {
            CAUSE(d, "the control group %.80s may hold %lld processes and does", own, max);
            FIX(d,
                "raise it (systemd: TasksMax=infinity; docker run --pids-limit=-1), or: echo max "
                "> %.120s/pids.max",
                dir);
            return true;
        }
        char *slash = strrchr(own, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
}

static bool machine_full(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    static const char *const names[] = {"threads-max", "pid_max"};
    struct sysinfo si;
    if (sysinfo(&si) < 0)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64];
        long long max;
        snprintf(path, sizeof path, "/proc/sys/kernel/%s", names[i]);
        if (!read_number(path, &max) || si.procs + 64 < max)
            continue;
        CAUSE(d, "the machine runs %d threads and kernel.%s is %lld", si.procs, names[i], max);
        FIX(d, "%s: sysctl -w kernel.%s=%lld", where_to_set(), names[i], max * 2);
        return true;
    }
    return false;
}

static bool user_limit(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    struct rlimit rl;
    if (getrlimit(RLIMIT_NPROC, &rl) < 0 || rl.rlim_cur == RLIM_INFINITY)
        return false;
    CAUSE(d, "this user may have %llu processes (RLIMIT_NPROC)", (unsigned long long)rl.rlim_cur);
    FIX(d, "ulimit -u unlimited (systemd: LimitNPROC=infinity)");
    return true;
}

static bool fork_without_memory(enum diagnose_step step, struct diagnosis *d) {
    (void)step;
    CAUSE(d, "no memory, or PID 1 of the pid namespace is dead");
    FIX(d, "see MemAvailable in /proc/meminfo, and the log for a nursery that ended");
    return true;
}

static const struct {
    unsigned steps;
    int errnum;
    bool (*explains)(enum diagnose_step step, struct diagnosis *d);
} rules[] = {
    {BIT(MOUNT_PROC) | BIT(WRITE_UID_MAP), ENOENT, no_proc},
    {BIT(CLONE_USER), EPERM, userns_clone_off},
    {CLONES, ENOSPC, namespace_limit},
    {BIT(CLONE_USER), EPERM, in_chroot},
    {CLONES | MOUNTS | BIT(WRITE_UID_MAP), EPERM, apparmor_restricts},
    {CLONES | MOUNTS | BIT(WRITE_UID_MAP), EACCES, apparmor_restricts},
    {BIT(MOUNT_PROC), EPERM, proc_masked},
    {BIT(WRITE_UID_MAP), EROFS, proc_read_only},
    {CLONES | MOUNTS, EPERM, seccomp_confined},
    {CLONES | MOUNTS, EACCES, apparmor_confined},
    {BIT(CLONE_USER), EPERM, user_ns_forbidden},
    {BIT(CLONE_USER), EACCES, user_ns_forbidden},
    {MOUNTS, ENOSYS, seccomp_confined},
    {MOUNTS, ENOSYS, mount_calls_missing},
    {CLONES, EINVAL, kernel_lacks},
    {BIT(WRITE_UID_MAP), EPERM, map_refused},
    {BIT(MOUNT_BIND), EACCES, path_unreachable},
    {BIT(SECCOMP_LOAD) | BIT(SECCOMP_LISTEN), EINVAL, seccomp_absent},
    {BIT(SECCOMP_LISTEN), EINVAL, listener_unknown},
    {BIT(SECCOMP_LISTEN), EBUSY, listener_taken},
    {BIT(CGROUP_WRITE), EROFS, cgroup_read_only},
    {BIT(CGROUP_WRITE), EACCES, cgroup_not_ours},
    {BIT(CGROUP_WRITE), EPERM, cgroup_not_ours},
    {BIT(CGROUP_WRITE), EBUSY, cgroup_occupied},
    {BIT(FORK), EAGAIN, pids_group_full},
    {BIT(FORK), EAGAIN, machine_full},
    {BIT(FORK), EAGAIN, user_limit},
    {BIT(FORK), ENOMEM, fork_without_memory},
};

bool diagnose_find(enum diagnose_step step, int errnum, struct diagnosis *ret) {
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        struct diagnosis d;
        if (rules[i].steps & 1u << step && rules[i].errnum == errnum &&
            rules[i].explains(step, &d)) {
            *ret = d;
            return true;
        }
    }
    return false;
}

void diagnose(struct err *e, enum diagnose_step step) {
    struct diagnosis d;
    if (!diagnose_find(step, e->code, &d))
        return;
    size_t len = strlen(e->text);
    snprintf(e->text + len, sizeof e->text - len, " (%s; %s)", d.cause, d.fix);
}
