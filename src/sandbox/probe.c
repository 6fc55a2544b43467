/* See probe.h.
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
 * They note step and errno only; the words are made by us, outside, where sysctls show the values
 * that apply (see diagnose.h). A child that hangs or is killed leaves its layers untried, which is
 * missing. */

#include "sandbox/probe.h"

#include "base/fd.h"
#include "sandbox/cores.h"
#include "sandbox/diagnose.h"
#include "sandbox/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    DEADLINE_MS = 10000, /* for a child that hangs; making a network namespace can take long */
    LANDLOCK_WHOLE = 6,  /* the ABI that also scopes signals and abstract sockets */
};

/* One layer as a child saw it. */
struct trial {
    bool tried;
    int errnum; /* 0: it works */
    enum diagnose_step step;
};

/* The page that we share with the children. */
struct trials {
    struct trial layers[PROBE_LAYERS_];
    struct probe_result cgroup;
};

/* ------------------------------------------------------------------ names */

static const struct {
    const char *name, *what, *lost;
} layer_words[] = {
#define X(name, what, lost) [PROBE_##name] = {#name, what, lost},
    PROBE_LAYERS(X)
#undef X
};

const char *probe_layer_name(enum probe_layer l) {
    return layer_words[l].name;
}

const char *probe_layer_what(enum probe_layer l) {
    return layer_words[l].what;
}

const char *probe_layer_lost(enum probe_layer l) {
    return layer_words[l].lost;
}

static uint32_t bit(enum probe_layer l) {
    return UINT32_C(1) << l;
}

static uint32_t word_layers(const char *word, size_t len) {
    const uint32_t all = bit(PROBE_LAYERS_) - 1;
    if (len == strlen("strict") && memcmp(word, "strict", len) == 0)
        return all & ~(bit(PROBE_ids) | bit(PROBE_cgroup) | bit(PROBE_landlock));
    for (enum probe_layer l = 0; l < PROBE_LAYERS_; l++)
        if (len == strlen(layer_words[l].name) && memcmp(word, layer_words[l].name, len) == 0)
            return bit(l);
    return 0;
}

int probe_minimum(const char *minimum, uint32_t *ret_layers, struct err *e) {
    static const char sep[] = " ,\t\n";
    uint32_t layers = 0;
    bool any = false;
    for (const char *s = minimum + strspn(minimum, sep); *s; s += strspn(s, sep)) {
        size_t len = strcspn(s, sep);
        uint32_t found = word_layers(s, len);
        if (!found && !(len == strlen("none") && memcmp(s, "none", len) == 0))
            return err_user(e, "bad_config",
                            "minimum: there is no layer \"%.*s\" (strict, none, or names as "
                            "`cloche doctor` lists them)",
                            (int)(len > 40 ? 40 : len), s);
        layers |= found;
        any = true;
        s += len;
    }
    /* SECURITY: an empty value is more likely a mistake than a wish to go without walls. */
    if (!any)
        return err_user(e, "bad_config", "minimum: it is empty; say \"none\" to require nothing");
    *ret_layers = layers;
    return 0;
}

/* ------------------------------------------------------------------ in the children */

static void note(struct trials *t, enum probe_layer l, enum diagnose_step step, int result) {
    t->layers[l] = (struct trial){.tried = true, .errnum = result < 0 ? errno : 0, .step = step};
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
static void try_mount_ns(struct trials *t) {
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

static bool works(const struct trials *t, enum probe_layer l) {
    return t->layers[l].tried && t->layers[l].errnum == 0;
}

/* PID 1 of the new pid namespace; mounts only when the mount namespace is surely our own. */
static void try_proc(struct trials *t) {
    die_with_parent();
    note(t, PROBE_pid_ns, DIAGNOSE_CLONE_PID, 0);
    if (works(t, PROBE_mount_ns))
        note(t, PROBE_proc, DIAGNOSE_MOUNT_PROC,
             mount("proc", "/proc", "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                   "hidepid=2"));
    _exit(0);
}

static pid_t try_pid_ns(struct trials *t) {
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

static void try_filter(struct trials *t) {
    struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = 1, .filter = allow};
    note(t, PROBE_no_new_privs, DIAGNOSE_SECCOMP_LOAD, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    note(t, PROBE_seccomp, DIAGNOSE_SECCOMP_LOAD,
         (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
    note(t, PROBE_notify, DIAGNOSE_SECCOMP_LISTEN,
         (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                      &program));
}

static void walls_main(struct trials *t, const struct idmap *ids, int sock) {
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
    }
    try_filter(t);
    if (pid1 > 0)
        while (waitpid(pid1, NULL, 0) < 0 && errno == EINTR)
            ;
    _exit(0);
}

static void tell_groups(struct trials *t, const struct cgroup_root *root) {
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

static void groups_main(struct trials *t, enum cgroup_kind want) {
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

/* `have` are groups that are open already: there is nothing to try then. */
static void run_children(struct trials *t, const struct idmap *ids, enum cgroup_kind want,
                         const struct cgroup_root *have, struct err *map_err) {
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
        walls_main(t, ids, walls_theirs);
    }
    fd_close(&walls_theirs);
    pid_t groups_pid = have ? 0 : fork();
    if (groups_pid == 0 && !have)
        groups_main(t, want);
    if (have)
        tell_groups(t, have);
    fd_close(&groups_theirs);
    if (walls_pid > 0)
        serve_walls(walls_pid, walls_ours, ids, map_err);
    if (groups_pid > 0)
        reap(groups_pid, !wait_readable(groups_ours));
}

static void tell_failure(struct probe_result *r, const struct trial *t) {
    struct diagnosis d;
    r->state = PROBE_MISSING;
    if (diagnose_find(t->step, t->errnum, &d)) {
        memcpy(r->how, d.cause, sizeof r->how);
        memcpy(r->fix, d.fix, sizeof r->fix);
        return;
    }
    snprintf(r->how, sizeof r->how, "it was refused: %s", strerror(t->errnum));
    snprintf(r->fix, sizeof r->fix,
             "ask whoever runs this machine; `dmesg` and `journalctl -k` may name the rule");
}

/* What could not be tried since another layer is missing says which one, and takes over its fix. */
static void tell_untried(struct probe *p, enum probe_layer l) {
    static const enum probe_layer below[] = {PROBE_user_ns, PROBE_pid_ns, PROBE_mount_ns};
    struct probe_result *r = &p->layers[l];
    struct diagnosis d;
    r->state = PROBE_MISSING;
    snprintf(r->how, sizeof r->how, "it could not be tried: the child that tries it ended early");
    snprintf(r->fix, sizeof r->fix, "see `dmesg` for what killed it, and the limits on processes");
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        const struct probe_result *other = &p->layers[below[i]];
        if (below[i] == l || other->state == PROBE_OK)
            continue;
        snprintf(r->how, sizeof r->how, "not tried without a %s", layer_words[below[i]].what);
        memcpy(r->fix, other->fix, sizeof r->fix);
        break;
    }
    /* One obstacle may hide the next: this one can be seen without trying. */
    if (l == PROBE_proc &&
        (diagnose_find(DIAGNOSE_MOUNT_PROC, ENOENT, &d) ||
         (diagnose_find(DIAGNOSE_MOUNT_PROC, EPERM, &d) && strstr(d.cause, "masked")))) {
        memcpy(r->how, d.cause, sizeof r->how);
        memcpy(r->fix, d.fix, sizeof r->fix);
    }
}

static void tell_user_ns(struct probe *p, const struct trials *t, const struct idmap *ids,
                         const struct err *map_err) {
    struct probe_result *r = &p->layers[PROBE_user_ns];
    if (!works(t, PROBE_user_ns))
        return;
    if (works(t, PROBE_ids)) {
        snprintf(r->how, sizeof r->how, "root inside is uid %u outside", ids->uid);
        return;
    }
    struct diagnosis d = {.fix = "see /etc/subuid and /etc/subgid"};
    const struct trial *ids_trial = &t->layers[PROBE_ids];
    snprintf(d.cause, sizeof d.cause, "%.150s",
             map_err->code ? map_err->text : strerror(ids_trial->errnum));
    diagnose_find(DIAGNOSE_WRITE_UID_MAP, map_err->code ? map_err->code : ids_trial->errnum, &d);
    r->state = PROBE_MISSING;
    snprintf(r->how, sizeof r->how, "made, but its ids cannot be used: %.110s", d.cause);
    memcpy(r->fix, d.fix, sizeof r->fix);
}

static void tell_ids(struct probe *p, const struct trials *t, const struct idmap *ids) {
    struct probe_result *r = &p->layers[PROBE_ids];
    if (!works(t, PROBE_ids)) {
        *r = p->layers[PROBE_user_ns];
    } else if (ids->single) {
        r->state = PROBE_WEAK;
        snprintf(r->how, sizeof r->how, "one id for all: %u", ids->uid);
        snprintf(r->fix, sizeof r->fix, "%s", ids->why);
    } else {
        *r = (struct probe_result){.state = ids->odd[0] ? PROBE_WEAK : PROBE_OK};
        snprintf(r->how, sizeof r->how, "%u ids from %u on%s%s%.80s", ids->count, ids->uid,
                 ids->helper ? ", mapped by newuidmap" : "", ids->odd[0] ? "; " : "", ids->odd);
        if (ids->odd[0])
            snprintf(r->fix, sizeof r->fix, "%s", ids->why);
    }
}

static void tell_landlock(struct probe_result *r) {
    int abi = landlock_abi();
    if (abi > 0) {
        r->state = abi >= LANDLOCK_WHOLE ? PROBE_OK : PROBE_WEAK;
        snprintf(r->how, sizeof r->how, "ABI %d", abi);
        if (r->state == PROBE_WEAK)
            snprintf(r->fix, sizeof r->fix, "Linux 6.12 or newer has ABI %d", LANDLOCK_WHOLE);
        return;
    }
    r->state = PROBE_MISSING;
    long got = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (got < 0 && errno == EOPNOTSUPP) {
        snprintf(r->how, sizeof r->how, "in the kernel, but not turned on at boot");
        snprintf(r->fix, sizeof r->fix,
                 "boot with lsm=landlock,… : put landlock first in the list that "
                 "/sys/kernel/security/lsm shows");
    } else {
        snprintf(r->how, sizeof r->how, "not in this kernel, or a filter on us hides it");
        snprintf(
            r->fix, sizeof r->fix,
            "Linux 6.12 or newer with CONFIG_SECURITY_LANDLOCK=y and landlock in lsm= at boot");
    }
}

static void tell_cores(struct probe_result *r) {
    cores_allow_limit(); /* as the warden does */
    if (cores_can_be_kept()) {
        snprintf(r->how, sizeof r->how, "limit of 1");
    } else if (!cores_are_piped()) {
        snprintf(r->how, sizeof r->how, "limit of 0, and the host does not pipe them");
    } else {
        r->state = PROBE_MISSING;
        snprintf(r->how, sizeof r->how,
                 "the hard limit is 0, and /proc/sys/kernel/core_pattern is a pipe");
        snprintf(r->fix, sizeof r->fix,
                 "start with a hard limit of core dumps of at least 1: LimitCORE=1 in a unit, "
                 "`Defaults rlimit_core=1` in sudoers, --ulimit core=1 for a container");
    }
}

static void tell_all(struct probe *p, const struct trials *t, const struct idmap *ids,
                     const struct err *map_err) {
    static const char *const words[PROBE_LAYERS_] = {
        [PROBE_proc] = "mounted",
        [PROBE_seccomp] = "filter loaded",
        [PROBE_notify] = "listener opened",
        [PROBE_no_new_privs] = "set",
    };
    for (enum probe_layer l = 0; l < PROBE_LAYERS_; l++) {
        struct probe_result *r = &p->layers[l];
        if (works(t, l))
            snprintf(r->how, sizeof r->how, "%s", words[l] ? words[l] : "made");
        else if (t->layers[l].tried)
            tell_failure(r, &t->layers[l]);
        if (l == PROBE_user_ns)
            tell_user_ns(p, t, ids, map_err);
    }
    tell_landlock(&p->layers[PROBE_landlock]);
    tell_cores(&p->layers[PROBE_cores]);
    for (enum probe_layer l = 0; l < PROBE_LAYERS_; l++)
        if (!t->layers[l].tried && l != PROBE_landlock && l != PROBE_cores)
            tell_untried(p, l);
    tell_ids(p, t, ids);
    struct probe_result *groups = &p->layers[PROBE_cgroup];
    struct diagnosis d;
    if (t->layers[PROBE_cgroup].tried)
        *groups = t->cgroup;
    if (groups->state != PROBE_OK && diagnose_find(DIAGNOSE_MOUNT_PROC, ENOENT, &d))
        memcpy(groups->fix, d.fix, sizeof groups->fix); /* they are found through /proc */
}

static void run(const struct idmap *ids, enum cgroup_kind want, const struct cgroup_root *have,
                struct probe *ret) {
    struct probe p = {0};
    struct err map_err = {0};
    struct trials none = {0};
    struct trials *t =
        mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (t != MAP_FAILED)
        run_children(t, ids, want, have, &map_err);
    tell_all(&p, t != MAP_FAILED ? t : &none, ids, &map_err);
    if (t != MAP_FAILED)
        munmap(t, sizeof *t);
    *ret = p;
}

void probe_run(const struct idmap *ids, enum cgroup_kind want_cgroup, struct probe *ret) {
    run(ids, want_cgroup, NULL, ret);
}

void probe_run_with(const struct idmap *ids, const struct cgroup_root *groups, struct probe *ret) {
    run(ids, groups->kind, groups, ret);
}

int probe_check(const struct probe *p, uint32_t need, struct err *e) {
    char names[160] = "";
    const struct probe_result *first = NULL;
    enum probe_layer worst = PROBE_LAYERS_;
    for (enum probe_layer l = 0; l < PROBE_LAYERS_; l++) {
        if (!(need & bit(l)) || p->layers[l].state == PROBE_OK)
            continue;
        size_t len = strlen(names);
        snprintf(names + len, sizeof names - len, "%s%s", len ? ", " : "", layer_words[l].name);
        if (!first) {
            first = &p->layers[l];
            worst = l;
        }
    }
    if (!first)
        return 0;
    return err_user(e, "below_minimum",
                    "this machine is below the minimum of isolation: %s; %s: %.90s; to do: %.160s",
                    names, layer_words[worst].name, first->how, first->fix);
}
