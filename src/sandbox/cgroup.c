/* The control group facade: our directories, the slots in them, and their end. What v1 and v2 do
 * differently is behind struct cgroup_ops (cgroup_v1.c, cgroup_v2.c); where our own groups are is
 * found by cgroup_find.c.
 *
 * One process, the warden, makes, resets and removes groups; the others only hold descriptors of
 * files in them. The directory cloche-<pid> tells whose it is, and its owner holds a lock (flock)
 * on it: it is a dead warden's when its pid is gone and the lock is free. The pid alone is not
 * enough, since wardens in different pid namespaces may share a group.
 *
 * Reuse. A dead sandbox leaves three kinds of charge behind in its memory group: the kernel's
 * per-CPU stock (up to 64 pages on every CPU that it ran on, charged ahead and given back at the
 * limit, so that it never causes an out-of-memory), kernel objects that wait for a grace period,
 * and page cache of files that it was the first to read. Measured on two CPUs after programs of all
 * sorts: 260 to 820 KiB of the first two, 1.7 MiB after 300 files in a tmpfs, 1.2 MiB of that 50 ms
 * later. So 1 MiB and a stock for every CPU count as empty. More than that, page cache apart, is
 * memory that something still holds (a descriptor of a tmpfs file kept 63 MB charged), and the slot
 * has to wait. Page cache itself is not worth waiting for: memory.force_empty takes 1 to 10 ms (at
 * times 100) in which the warden stands still, and the next program reads the files again. Such a
 * slot's groups are made anew, which takes a quarter of a millisecond and keeps the cache. */

#include "sandbox/cgroup.h"

#include "base/clock.h"
#include "base/fd.h"
#include "sandbox/cgroup_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLURP_MAX     (16u << 20)
#define CLEAR_MS      2000 /* for killed processes to be gone */
#define STOCK_BYTES   (256u << 10)
#define RESIDUE_BYTES (1u << 20)

static const struct cgroup_ops *ops_of(const struct cgroup_root *r) {
    return r->kind == CGROUP_V2 ? &cgroup_v2_ops : &cgroup_v1_ops;
}

/* Reading and writing the files of a group */

int cgroup_slurp(int dir, const char *name, struct buf *to, struct err *e) {
    AUTO_FD fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "open %s", name);
    while (to->len < SLURP_MAX) {
        char *room = buf_reserve(to, 4096);
        ssize_t n = read(fd, room, 4096);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "read %s", name);
        buf_commit(to, (size_t)n);
        if (n == 0)
            return 0;
    }
    return err_set(e, EFBIG, "read %s: more than %u bytes", name, SLURP_MAX);
}

int cgroup_each_proc(int dir, void (*fn)(pid_t pid, void *ctx), void *ctx) {
    AUTO_BUF list = BUF_INIT;
    struct err e;
    if (cgroup_slurp(dir, "cgroup.procs", &list, &e) < 0)
        return -1;
    int count = 0;
    for (const char *at = list.data; *at;) {
        pid_t pid = 0;
        for (; *at >= '0' && *at <= '9'; at++)
            pid = pid * 10 + (*at - '0');
        at += strcspn(at, "\n");
        at += *at == '\n';
        count++;
        /* SECURITY: a process that our pid namespace does not show is listed as 0, which is our own
         * process group to kill(). */
        if (pid > 0)
            fn(pid, ctx);
    }
    return count;
}

int cgroup_knob_write(const struct cgroup_slot *s, enum cgroup_knob k, const char *text,
                      struct err *e) {
    if (pwrite(s->knobs[k], text, strlen(text), 0) < 0)
        return err_sys(e, "set cgroup knob %d of slot %u to %s", (int)k, s->slot, text);
    return 0;
}

static uint64_t parse_u64(const char *at) {
    uint64_t v = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        v = v * 10 + (uint64_t)(*at - '0');
    return v;
}

static uint64_t slot_usage(const struct cgroup_slot *s) {
    char text[32];
    ssize_t n = pread(s->knobs[KNOB_MEMORY_USAGE], text, sizeof text - 1, 0);
    if (n <= 0)
        return UINT64_MAX;
    text[n] = '\0';
    return parse_u64(text);
}

static uint64_t stat_field(const char *stat, const char *name) {
    size_t len = strlen(name);
    for (const char *at = stat; *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (strncmp(at, name, len) == 0 && at[len] == ' ')
            return parse_u64(at + len + 1);
    return 0;
}

static int role_dir(const struct cgroup_root *r, const int *dirs, unsigned role) {
    for (unsigned i = 0; i < r->ndirs; i++)
        if (r->roles[i] & role)
            return dirs[i];
    return -1;
}

/* Page cache but for tmpfs, which is not cache but memory. */
static uint64_t slot_page_cache(const struct cgroup_root *r, const struct cgroup_slot *s) {
    AUTO_BUF stat = BUF_INIT;
    struct err e;
    if (cgroup_slurp(role_dir(r, s->dirs, ROLE_MEMORY), "memory.stat", &stat, &e) < 0)
        return 0;
    uint64_t file = stat_field(stat.data, ops_of(r)->file_stat);
    uint64_t shmem = stat_field(stat.data, "shmem");
    return file > shmem ? file - shmem : 0;
}

/* Ending what is in a group */

/* A task frozen by v1 does not die of SIGKILL before it is thawed; v2's does, but its group would
 * stay frozen for the next one. */
static void group_thaw(const struct cgroup_root *r, unsigned i, int dir) {
    struct err e;
    if (r->kind == CGROUP_V2)
        (void)file_write_at(dir, "cgroup.freeze", "0", &e);
    else if (r->roles[i] & ROLE_FREEZER)
        (void)file_write_at(dir, "freezer.state", "THAWED", &e);
}

static void kill_one(pid_t pid, void *ctx) {
    (void)ctx;
    if (pid != getpid())
        kill(pid, SIGKILL);
}

struct walk {
    const struct cgroup_root *r;
    unsigned i; /* which hierarchy */
    int left;
};

static void dir_each(int dir, void (*fn)(int dir, const char *name, struct walk *w),
                     struct walk *w) {
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        fd_close(&fd);
        return;
    }
    for (struct dirent *ent; (ent = readdir(d));)
        if (ent->d_type == DT_DIR && ent->d_name[0] != '.')
            fn(dir, ent->d_name, w);
    closedir(d);
}

static void group_kill(const struct cgroup_root *r, unsigned i, int dir);

static void sub_kill_named(int dir, const char *name, struct walk *w) {
    AUTO_FD fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        group_kill(w->r, w->i, fd);
}

/* cgroup.kill (v2, Linux 5.14) misses nobody. Without it a fork bomb could outrun us: no forks from
 * here on, and a second pass for those that were under way. (What counts for a group counts for
 * those below, too.) */
static void group_kill(const struct cgroup_root *r, unsigned i, int dir) {
    struct err e;
    if (r->kind == CGROUP_V2 && file_write_at(dir, "cgroup.kill", "1", &e) == 0)
        return;
    if (r->roles[i] & ROLE_PIDS)
        (void)file_write_at(dir, "pids.max", "0", &e);
    int seen = cgroup_each_proc(dir, kill_one, NULL);
    if (seen > 0 && r->roles[i] & ROLE_PIDS)
        (void)cgroup_each_proc(dir, kill_one, NULL);
    struct walk w = {.r = r, .i = i};
    dir_each(dir, sub_kill_named, &w);
}

static void sub_remove_named(int dir, const char *name, struct walk *w) {
    (void)w;
    (void)unlinkat(dir, name, AT_REMOVEDIR);
}

/* With its subs, if it has any left. */
static int group_remove(int parent, const char *name, int dir) {
    struct walk w = {0};
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0)
        return 0;
    if (errno != EBUSY)
        return -1;
    dir_each(dir, sub_remove_named, &w);
    return unlinkat(parent, name, AT_REMOVEDIR);
}

static int slot_open_named(int dir, const char *name) {
    if (strspn(name, "0123456789") != strlen(name))
        return -1;
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void slot_thaw_named(int dir, const char *name, struct walk *w) {
    AUTO_FD fd = slot_open_named(dir, name);
    if (fd >= 0)
        group_thaw(w->r, w->i, fd);
}

static void slot_end_named(int dir, const char *name, struct walk *w) {
    AUTO_FD fd = slot_open_named(dir, name);
    if (fd < 0)
        return;
    group_kill(w->r, w->i, fd);
    if (group_remove(dir, name, fd) < 0)
        w->left++;
}

/* Kills and removes the slots in a warden's directories, one per hierarchy or -1. Waits until they
 * are gone: there is no event for the death of somebody else's children that both versions have. */
static void slots_clear(const struct cgroup_root *r, const int *dirs) {
    uint64_t deadline = now_ms() + CLEAR_MS;
    for (;;) {
        struct walk w = {.r = r};
        for (w.i = 0; w.i < r->ndirs; w.i++)
            if (dirs[w.i] >= 0)
                dir_each(dirs[w.i], slot_thaw_named, &w);
        for (w.i = 0; w.i < r->ndirs; w.i++)
            if (dirs[w.i] >= 0)
                dir_each(dirs[w.i], slot_end_named, &w);
        if (w.left == 0 || now_ms() >= deadline)
            return;
        poll(NULL, 0, 1);
    }
}

/* Our directories, and those that dead wardens left */

static void sweep_name(const struct cgroup_root *r, const char *name) {
    int dirs[CGROUP_MAX_PROCS];
    memset(dirs, -1, sizeof dirs);
    bool dead = true;
    for (unsigned i = 0; i < r->ndirs; i++) {
        dirs[i] = openat(r->parents[i], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dirs[i] >= 0 && flock(dirs[i], LOCK_EX | LOCK_NB) < 0)
            dead = false;
    }
    if (dead) {
        slots_clear(r, dirs);
        for (unsigned i = 0; i < r->ndirs; i++)
            if (dirs[i] >= 0) {
                ops_of(r)->inherit(r, dirs[i]);
                (void)unlinkat(r->parents[i], name, AT_REMOVEDIR);
            }
    }
    fd_close_all(dirs, r->ndirs);
}

/* A zombie has no program any more; whoever inherited it may take a while to reap it. */
static bool is_dead(pid_t pid) {
    char path[32], program[2];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    return readlink(path, program, sizeof program) < 0 && (errno == ENOENT || errno == ESRCH);
}

static void sweep_dead(int dir, const char *name, struct walk *w) {
    (void)dir;
    pid_t pid = cgroup_name_pid(name, strlen(name));
    if (pid > 0 && is_dead(pid))
        sweep_name(w->r, name);
}

void cgroup_sweep(const struct cgroup_root *r) {
    struct walk w = {.r = r};
    for (; r->kind != CGROUP_NONE && w.i < r->ndirs; w.i++)
        dir_each(r->parents[w.i], sweep_dead, &w);
}

static int make_group(int parent, const char *name, int *ret_fd, struct err *e) {
    if (mkdirat(parent, name, 0755) < 0)
        return err_sys(e, "make the control group %s", name);
    *ret_fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret_fd >= 0)
        return 0;
    err_sys(e, "open the control group %s", name);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
    return -1;
}

/* One that is there already is a dead warden's that had our pid (v2: with processes in its leaf),
 * unless somebody holds its lock. */
static int root_make_dirs(struct cgroup_root *r, struct err *e) {
    for (unsigned i = 0; i < r->ndirs; i++) {
        AUTO_FD fd = -1;
        if (make_group(r->parents[i], r->name, &fd, e) < 0 && e->code == EEXIST)
            fd = openat(r->parents[i], r->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            return err_wrap(e, "%.100s", r->where);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
            return err_sys(e, "lock %s", r->name);
        r->dirs[i] = fd_take(&fd);
    }
    return 0;
}

/* Kernels are built without this or that (CFS_BANDWIDTH); better to know it now. */
static int root_check_knobs(const struct cgroup_root *r, struct err *e) {
    const struct cgroup_ops *ops = ops_of(r);
    for (unsigned k = 0; k < KNOBS_; k++) {
        if (k == KNOB_MEMORY_PEAK || k == KNOB_FREEZE)
            continue;
        if (faccessat(role_dir(r, r->dirs, ops->knobs[k].role), ops->knobs[k].name, F_OK, 0) < 0)
            return err_sys(e, "%s in %s", ops->knobs[k].name, r->where);
    }
    return 0;
}

static void root_init(struct cgroup_root *r) {
    *r = (struct cgroup_root){.kind = CGROUP_NONE};
    memset(r->dirs, -1, sizeof r->dirs);
    memset(r->parents, -1, sizeof r->parents);
    snprintf(r->name, sizeof r->name, CGROUP_PREFIX "%d", (int)getpid());
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    r->clean_bytes = RESIDUE_BYTES + (cpus > 0 ? (uint64_t)cpus : 1) * STOCK_BYTES;
}

static int root_try(struct cgroup_root *r, enum cgroup_kind kind, const struct cgroup_places *p,
                    struct err *e) {
    root_init(r);
    r->kind = kind;
    const struct cgroup_ops *ops = ops_of(r);
    if (ops->find(p, r, e) == 0) {
        sweep_name(r, r->name);
        if (root_make_dirs(r, e) == 0 && ops->enable(r, e) == 0 && root_check_knobs(r, e) == 0)
            return 0;
    }
    cgroup_root_close(r);
    return -1;
}

/* Not an error: this machine, or this user, does not have it. */
static bool is_lack(int code) {
    return code == ENOENT || code == ENODEV || code == EACCES || code == EPERM || code == EROFS ||
           code == EOPNOTSUPP;
}

static void root_explain(enum cgroup_kind kind, const struct err *e, char *why, size_t cap) {
    const char *fix = "";
    if (kind == CGROUP_V1 && e->code != ENODEV)
        fix = "; cgroup v1 needs root";
    else if (kind == CGROUP_V2 && e->code != ENODEV)
        fix = geteuid() == 0 ? "; try: systemd-run --scope -p Delegate=yes cloche serve"
                             : "; try: systemd-run --user --scope -p Delegate=yes cloche serve";
    snprintf(why, cap, "%.*s%s", (int)(cap - strlen(fix) - 1), e->text, fix);
}

int cgroup_root_open(struct cgroup_root *r, enum cgroup_kind want, struct err *e) {
    root_init(r);
    AUTO_BUF mounts = BUF_INIT;
    AUTO_BUF self = BUF_INIT;
    if (cgroup_slurp(AT_FDCWD, "/proc/self/mountinfo", &mounts, e) < 0 ||
        cgroup_slurp(AT_FDCWD, "/proc/self/cgroup", &self, e) < 0)
        return -1;
    struct cgroup_places p;
    cgroup_places_parse(mounts.data, self.data, &p);

    char why[sizeof r->why] = "";
    static const enum cgroup_kind order[] = {CGROUP_V2, CGROUP_V1};
    for (unsigned i = 0; i < 2; i++) {
        if (want == CGROUP_NONE ? order[i] == CGROUP_V1 && p.nv1 == 0 : want != order[i])
            continue;
        if (root_try(r, order[i], &p, e) == 0)
            return 0;
        if (!is_lack(e->code))
            return err_wrap(e, "control groups");
        root_explain(order[i], e, why, sizeof why);
    }
    root_init(r);
    memcpy(r->why, why, sizeof why);
    return 0;
}

void cgroup_root_close(struct cgroup_root *r) {
    if (r->kind != CGROUP_NONE && role_dir(r, r->dirs, ROLE_MEMORY) >= 0) {
        slots_clear(r, r->dirs);
        ops_of(r)->disable(r);
    }
    for (unsigned i = 0; i < r->ndirs; i++)
        if (r->dirs[i] >= 0)
            (void)unlinkat(r->parents[i], r->name, AT_REMOVEDIR);
    fd_close_all(r->dirs, r->ndirs);
    fd_close_all(r->parents, r->ndirs);
    r->ndirs = 0;
    r->kind = CGROUP_NONE;
}

/* Slots */

static void slot_init(struct cgroup_slot *s, unsigned slot, const char *prefix) {
    *s = (struct cgroup_slot){.slot = slot};
    snprintf(s->name, sizeof s->name, "%s%u", prefix, slot);
    memset(s->dirs, -1, sizeof s->dirs);
    memset(s->procs, -1, sizeof s->procs);
    memset(s->knobs, -1, sizeof s->knobs);
}

static int slot_make_dirs(const struct cgroup_root *r, const int *parents, struct cgroup_slot *s,
                          struct err *e) {
    for (unsigned i = 0; i < r->ndirs; i++) {
        (void)unlinkat(parents[i], s->name,
                       AT_REMOVEDIR); /* one that was left when it was not empty */
        if (make_group(parents[i], s->name, &s->dirs[i], e) < 0)
            return -1;
        s->procs[i] = openat(s->dirs[i], ops_of(r)->join, O_WRONLY | O_CLOEXEC);
        if (s->procs[i] < 0)
            return err_sys(e, "open %s", ops_of(r)->join);
        s->nprocs++;
    }
    return 0;
}

static int slot_open_knobs(const struct cgroup_root *r, struct cgroup_slot *s, struct err *e) {
    const struct cgroup_ops *ops = ops_of(r);
    for (unsigned k = 0; k < KNOBS_; k++) {
        int dir = role_dir(r, s->dirs, ops->knobs[k].role);
        s->knobs[k] = openat(dir, ops->knobs[k].name, ops->knobs[k].flags | O_CLOEXEC);
        /* Not all kernels have a peak, or one that can be written. */
        if (s->knobs[k] < 0 && k == KNOB_MEMORY_PEAK)
            s->knobs[k] = openat(dir, ops->knobs[k].name, O_RDONLY | O_CLOEXEC);
        if (s->knobs[k] < 0 && k == KNOB_MEMORY_PEAK)
            s->knobs[k] = openat(dir, ops->knobs[KNOB_MEMORY_USAGE].name, O_RDONLY | O_CLOEXEC);
        if (s->knobs[k] < 0 && k == KNOB_FREEZE) /* there need not be a freezer */
            s->knobs[k] = openat(role_dir(r, s->dirs, ROLE_PIDS), ops->knobs[KNOB_PIDS_EVENTS].name,
                                 O_RDONLY | O_CLOEXEC);
        if (s->knobs[k] < 0)
            return err_sys(e, "open %s", ops->knobs[k].name);
    }
    s->nknobs = KNOBS_;
    return 0;
}

static void slot_close(struct cgroup_slot *s) {
    fd_close_all(s->dirs, CGROUP_MAX_PROCS);
    fd_close_all(s->procs, CGROUP_MAX_PROCS);
    fd_close_all(s->knobs, KNOBS_);
    s->nprocs = s->nknobs = 0;
}

static void slot_remove(const struct cgroup_root *r, const int *parents,
                        const struct cgroup_slot *s) {
    for (unsigned i = 0; i < r->ndirs; i++)
        if (s->dirs[i] >= 0)
            (void)group_remove(parents[i], s->name, s->dirs[i]);
}

static int slot_make(const struct cgroup_root *r, const int *parents, struct cgroup_slot *s,
                     const struct cgroup_limits *l, struct err *e) {
    if (slot_make_dirs(r, parents, s, e) == 0 && slot_open_knobs(r, s, e) == 0 &&
        ops_of(r)->prepare(s, e) == 0 && ops_of(r)->limit(s, l, e) == 0)
        return 0;
    slot_remove(r, parents, s);
    slot_close(s);
    return -1;
}

int cgroup_slot_make(const struct cgroup_root *r, unsigned slot, const struct cgroup_limits *l,
                     struct cgroup_slot *ret, struct err *e) {
    struct cgroup_slot s;
    slot_init(&s, slot, "");
    if (r->kind != CGROUP_NONE && slot_make(r, r->dirs, &s, l, e) < 0)
        return err_wrap(e, "control group of slot %u", slot);
    *ret = s;
    return 0;
}

int cgroup_slot_reset(const struct cgroup_root *r, struct cgroup_slot *s,
                      const struct cgroup_limits *l, struct err *e) {
    s->renewed = false;
    if (r->kind == CGROUP_NONE)
        return 0;
    if (!s->split && slot_usage(s) <= r->clean_bytes && ops_of(r)->restart_peak(s)) {
        if (ops_of(r)->limit(s, l, e) < 0)
            return err_wrap(e, "control group of slot %u", s->slot);
        return 0;
    }
    cgroup_slot_done(r, s, true);
    if (cgroup_slot_make(r, s->slot, l, s, e) < 0)
        return -1;
    s->renewed = true;
    return 0;
}

bool cgroup_slot_is_clean(const struct cgroup_root *r, const struct cgroup_slot *s) {
    if (r->kind == CGROUP_NONE)
        return true;
    /* In every hierarchy: one that was killed while it attached itself may be in some only. */
    for (unsigned i = 0; i < s->nprocs; i++) {
        char first;
        const char *list = s->split ? CGROUP_MAIN "/cgroup.procs" : "cgroup.procs";
        AUTO_FD fd = openat(s->dirs[i], list, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, &first, 1) != 0)
            return false;
    }
    return cgroup_slot_bytes(r, s) <= r->clean_bytes;
}

uint64_t cgroup_slot_bytes(const struct cgroup_root *r, const struct cgroup_slot *s) {
    uint64_t usage = r->kind == CGROUP_NONE ? 0 : slot_usage(s);
    if (usage <= r->clean_bytes)
        return usage;
    uint64_t cache = slot_page_cache(r, s);
    return cache >= usage ? 0 : usage - cache;
}

pid_t cgroup_slot_shrink(const struct cgroup_root *r, const struct cgroup_slot *s) {
    if (r->kind == CGROUP_NONE)
        return -1;
    const char *const *how = ops_of(r)->shrink;
    AUTO_FD fd = openat(role_dir(r, s->dirs, ROLE_MEMORY), how[0], O_WRONLY | O_CLOEXEC);
    pid_t pid = fd < 0 ? -1 : fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (dup2(fd, 0) == 0 && close_range(1, ~0u, 0) == 0) /* others wait for the ends of ours */
        (void)!write(0, how[1], strlen(how[1]));
    _exit(0);
}

void cgroup_slot_kill(const struct cgroup_root *r, const struct cgroup_slot *s) {
    for (unsigned i = 0; i < s->nprocs; i++)
        group_thaw(r, i, s->dirs[i]);
    for (unsigned i = 0; i < s->nprocs; i++)
        group_kill(r, i, s->dirs[i]);
}

void cgroup_slot_done(const struct cgroup_root *r, struct cgroup_slot *s, bool remove) {
    if (remove)
        slot_remove(r, r->dirs, s);
    slot_close(s);
}

/* Subs */

int cgroup_sub_make(const struct cgroup_root *r, struct cgroup_slot *s, unsigned number,
                    const struct cgroup_limits *l, struct cgroup_slot *ret, struct err *e) {
    struct cgroup_slot sub;
    slot_init(&sub, number, "k");
    if (r->kind == CGROUP_NONE)
        return err_set(e, ENODEV, "there are no control groups here");
    if (ops_of(r)->split(r, s, e) < 0 || slot_make(r, s->dirs, &sub, l, e) < 0)
        return err_wrap(e, "control group %s of slot %u", sub.name, s->slot);
    *ret = sub;
    return 0;
}

bool cgroup_sub_remove(const struct cgroup_root *r, const struct cgroup_slot *s,
                       const struct cgroup_slot *sub) {
    bool gone = true;
    ops_of(r)->let_go(sub);
    for (unsigned i = 0; i < r->ndirs; i++) {
        if (sub->dirs[i] < 0 || unlinkat(s->dirs[i], sub->name, AT_REMOVEDIR) == 0 ||
            errno == ENOENT)
            continue;
        group_kill(r, i, sub->dirs[i]);
        gone = false;
    }
    return gone;
}

int cgroup_attach(const int *procs, unsigned nprocs, struct err *e) {
    for (unsigned i = 0; i < nprocs; i++)
        if (write(procs[i], "0", 1) < 0)
            return err_sys(e, "join a control group");
    return 0;
}
