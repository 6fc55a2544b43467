/* The control group facade: our directories, and the slots in them. What v1 and v2 do differently
 * is behind struct cgroup_ops (cgroup_v1.c, cgroup_v2.c); cgroup_find.c finds where our own groups
 * are, cgroup_end.c ends what is in them.
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

#include "base/fd.h"
#include "sandbox/cgroup_end.h"
#include "sandbox/cgroup_files.h"
#include "sandbox/cgroup_find.h"
#include "sandbox/cgroup_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define STOCK_BYTES   (256u << 10)
#define RESIDUE_BYTES (1u << 20)

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

/* Page cache but for tmpfs, which is not cache but memory. */
static uint64_t slot_page_cache(const struct cgroup_root *r, const struct cgroup_slot *s) {
    AUTO_BUF stat = BUF_INIT;
    struct err e;
    if (cgroup_slurp(cgroup_role_dir(r, s->dirs, ROLE_MEMORY), "memory.stat", &stat, &e) < 0)
        return 0;
    uint64_t file = stat_field(stat.data, cgroup_ops_of(r)->file_stat);
    uint64_t shmem = stat_field(stat.data, "shmem");
    return file > shmem ? file - shmem : 0;
}

/* Our directories */

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
    const struct cgroup_ops *ops = cgroup_ops_of(r);
    for (unsigned k = 0; k < KNOBS_; k++) {
        if (k == KNOB_MEMORY_PEAK || k == KNOB_FREEZE)
            continue;
        if (faccessat(cgroup_role_dir(r, r->dirs, ops->knobs[k].role), ops->knobs[k].name, F_OK,
                      0) < 0)
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
    const struct cgroup_ops *ops = cgroup_ops_of(r);
    if (ops->find(p, r, e) == 0) {
        cgroup_sweep_name(r, r->name);
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
    if (r->kind != CGROUP_NONE && cgroup_role_dir(r, r->dirs, ROLE_MEMORY) >= 0) {
        cgroup_clear(r, r->dirs);
        cgroup_ops_of(r)->disable(r);
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
        s->procs[i] = openat(s->dirs[i], cgroup_ops_of(r)->join, O_WRONLY | O_CLOEXEC);
        if (s->procs[i] < 0)
            return err_sys(e, "open %s", cgroup_ops_of(r)->join);
        s->nprocs++;
    }
    return 0;
}

static int slot_open_knobs(const struct cgroup_root *r, struct cgroup_slot *s, struct err *e) {
    const struct cgroup_ops *ops = cgroup_ops_of(r);
    for (unsigned k = 0; k < KNOBS_; k++) {
        int dir = cgroup_role_dir(r, s->dirs, ops->knobs[k].role);
        s->knobs[k] = openat(dir, ops->knobs[k].name, ops->knobs[k].flags | O_CLOEXEC);
        /* Not all kernels have a peak, or one that can be written. */
        if (s->knobs[k] < 0 && k == KNOB_MEMORY_PEAK)
            s->knobs[k] = openat(dir, ops->knobs[k].name, O_RDONLY | O_CLOEXEC);
        if (s->knobs[k] < 0 && k == KNOB_MEMORY_PEAK)
            s->knobs[k] = openat(dir, ops->knobs[KNOB_MEMORY_USAGE].name, O_RDONLY | O_CLOEXEC);
        if (s->knobs[k] < 0 && k == KNOB_FREEZE) /* there need not be a freezer */
            s->knobs[k] = openat(cgroup_role_dir(r, s->dirs, ROLE_PIDS),
                                 ops->knobs[KNOB_PIDS_EVENTS].name, O_RDONLY | O_CLOEXEC);
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
            (void)cgroup_remove(parents[i], s->name, s->dirs[i]);
}

static int slot_make(const struct cgroup_root *r, const int *parents, struct cgroup_slot *s,
                     const struct cgroup_limits *l, struct err *e) {
    if (slot_make_dirs(r, parents, s, e) == 0 && slot_open_knobs(r, s, e) == 0 &&
        cgroup_ops_of(r)->prepare(s, e) == 0 && cgroup_ops_of(r)->limit(s, l, e) == 0)
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
    if (!s->split && slot_usage(s) <= r->clean_bytes && cgroup_ops_of(r)->restart_peak(s)) {
        if (cgroup_ops_of(r)->limit(s, l, e) < 0)
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

uint64_t cgroup_root_bytes(const struct cgroup_root *r) {
    AUTO_BUF stat = BUF_INIT;
    AUTO_BUF usage = BUF_INIT;
    struct err e;
    int dir = r->kind == CGROUP_NONE ? -1 : cgroup_role_dir(r, r->dirs, ROLE_MEMORY);
    const char *all = r->kind == CGROUP_V1 ? "total_" : "";
    char file[64], shmem[64];
    snprintf(file, sizeof file, "%s%s", all, cgroup_ops_of(r)->file_stat);
    snprintf(shmem, sizeof shmem, "%sshmem", all);
    if (dir < 0 ||
        cgroup_slurp(dir, cgroup_ops_of(r)->knobs[KNOB_MEMORY_USAGE].name, &usage, &e) < 0 ||
        cgroup_slurp(dir, "memory.stat", &stat, &e) < 0)
        return 0;
    uint64_t bytes = parse_u64(usage.data), cache = stat_field(stat.data, file);
    cache -= stat_field(stat.data, shmem) < cache ? stat_field(stat.data, shmem) : cache;
    return cache < bytes ? bytes - cache : 0;
}

pid_t cgroup_slot_shrink(const struct cgroup_root *r, const struct cgroup_slot *s) {
    if (r->kind == CGROUP_NONE)
        return -1;
    const char *const *how = cgroup_ops_of(r)->shrink;
    AUTO_FD fd = openat(cgroup_role_dir(r, s->dirs, ROLE_MEMORY), how[0], O_WRONLY | O_CLOEXEC);
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
        cgroup_thaw(r, i, s->dirs[i]);
    for (unsigned i = 0; i < s->nprocs; i++)
        cgroup_kill(r, i, s->dirs[i]);
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
    if (cgroup_ops_of(r)->split(r, s, e) < 0 || slot_make(r, s->dirs, &sub, l, e) < 0)
        return err_wrap(e, "control group %s of slot %u", sub.name, s->slot);
    *ret = sub;
    return 0;
}

bool cgroup_sub_remove(const struct cgroup_root *r, const struct cgroup_slot *s,
                       const struct cgroup_slot *sub) {
    bool gone = true;
    cgroup_ops_of(r)->let_go(sub);
    for (unsigned i = 0; i < r->ndirs; i++) {
        if (sub->dirs[i] < 0 || unlinkat(s->dirs[i], sub->name, AT_REMOVEDIR) == 0 ||
            errno == ENOENT)
            continue;
        cgroup_kill(r, i, sub->dirs[i]);
        gone = false;
    }
    return gone;
}
