/* cgroup v2: one tree. A slot is one directory, <our own group>/cloche-<pid>/<slot>.
 *
 * No internal processes. Controllers can be switched on for the children of a group only while it
 * holds no process itself (the root of the tree alone is exempt). Our own group holds at least us,
 * so that everything in it moves into the leaf cloche-<pid>/self first; whoever else is there (the
 * shell of a container, the process that started us) moves along, since one that stays would block
 * it:
 *
 *     G            subtree_control: +memory +pids +cpu
 *       cloche-7   the same
 *         self     whoever was in G
 *         0, 1, …  slots
 *
 * A slot is a leaf, too, until a process in it gets limits of its own; then
 *
 *         3        the same as G
 *           main   whoever was in 3, and whoever comes without limits of its own
 *           k7     process 7
 *
 * and it stays so until it is made anew for the next sandbox.
 *
 * Hence "self exists" means that a warden switched the controllers of G on. Closing puts it right:
 * the controllers off, the processes back into G. While another warden beside us still uses them
 * that fails (EBUSY), and our leaf's processes move into its leaf, with the duty to put it right. A
 * warden that is started from within such a leaf takes G for its own group, and one that dies
 * leaves its leaf to the next one's sweep.
 *
 * The peak. memory.peak is there from Linux 5.19 and can be restarted from 6.12 on: a write
 * restarts it for that open file, which we share with the server. Between the two, a slot that is
 * to be used again is made again. Before, memory.current stands in for it: what is used when it is
 * read. */

#include "sandbox/cgroup_v2.h"

#include "base/fd.h"
#include "sandbox/cgroup_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CPU_PERIOD_US 100000u
#define MOVE_ROUNDS   16 /* processes fork while they are being moved */
#define ENABLE_ROUNDS 4

/* Our group's path without "/cloche-<pid>/self", the leaf that another warden moved us into. */
static void strip_leaf(char *path) {
    char *leaf = strrchr(path, '/');
    if (!leaf || strcmp(leaf, "/" CGROUP_SELF) != 0)
        return;
    size_t end = (size_t)(leaf - path), start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    if (start > 1 && cgroup_name_pid(path + start, end - start))
        path[start - 1] = '\0';
}

static int v2_find(const struct cgroup_places *p, struct cgroup_root *r, struct err *e) {
    if (!p->v2[0])
        return err_set(e, ENODEV,
                       "no cgroup is mounted; as root: mount -t cgroup2 none /sys/fs/cgroup");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", p->v2);
    strip_leaf(path);
    AUTO_FD fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "open %s", path);
    AUTO_BUF controllers = BUF_INIT;
    if (cgroup_slurp(fd, "cgroup.controllers", &controllers, e) < 0)
        return err_wrap(e, "%.60s", path);
    unsigned missing = ROLES_V2 & ~cgroup_roles_parse(controllers.data, " \n");
    char names[64];
    if (missing)
        return err_set(e, ENOENT, "cgroup v2 gives us no %s at %.90s",
                       cgroup_roles_format(missing, names, sizeof names), path);
    r->parents[0] = fd_take(&fd);
    r->roles[0] = ROLES_V2;
    r->ndirs = 1;
    snprintf(r->where, sizeof r->where, "%.*s", (int)sizeof r->where - 1, path);
    return 0;
}

static void move_one(pid_t pid, void *ctx) {
    const int *procs = ctx;
    char text[16];
    int n = snprintf(text, sizeof text, "%d", (int)pid);
    /* One that has ended meanwhile is not there to be moved. */
    (void)!write(*procs, text, (size_t)n);
}

/* All processes of group `from` into group `to`. */
static int move_all(int from, int to, struct err *e) {
    AUTO_FD procs = openat(to, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    if (procs < 0)
        return err_sys(e, "open cgroup.procs");
    int left = 1;
    for (int i = 0; left > 0 && i < MOVE_ROUNDS; i++)
        left = cgroup_each_proc(from, move_one, &procs);
    return left == 0 ? 0 : err_set(e, EBUSY, "processes stay in our own control group");
}

static int move_into_leaf(int from, int dir, struct err *e) {
    if (mkdirat(dir, CGROUP_SELF, 0755) < 0 && errno != EEXIST)
        return err_sys(e, "make the control group " CGROUP_SELF);
    AUTO_FD leaf = openat(dir, CGROUP_SELF, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (leaf < 0)
        return err_sys(e, "open the control group " CGROUP_SELF);
    return move_all(from, leaf, e);
}

static int switch_controllers(int dir, char sign, unsigned roles, struct err *e) {
    char text[64];
    size_t n = 0;
    static const struct {
        unsigned role;
        const char *name;
    } names[] = {{ROLE_MEMORY, "memory"}, {ROLE_PIDS, "pids"}, {ROLE_CPU, "cpu"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (roles & names[i].role)
            n += (size_t)snprintf(text + n, sizeof text - n, " %c%s", sign, names[i].name);
    return n ? file_write_at(dir, "cgroup.subtree_control", text, e) : 0;
}

static int enable_in_parent(struct cgroup_root *r, struct err *e) {
    AUTO_BUF have = BUF_INIT;
    if (cgroup_slurp(r->parents[0], "cgroup.subtree_control", &have, e) < 0)
        return -1;
    unsigned missing = ROLES_V2 & ~cgroup_roles_parse(have.data, " \n");
    if (!missing)
        return 0;
    r->enabled |= missing;
    int done = switch_controllers(r->parents[0], '+', missing, e);
    for (int i = 0; done < 0 && e->code == EBUSY && i < ENABLE_ROUNDS; i++) {
        if (move_into_leaf(r->parents[0], r->dirs[0], e) < 0)
            return -1;
        done = switch_controllers(r->parents[0], '+', missing, e);
    }
    return done;
}

static int v2_enable(struct cgroup_root *r, struct err *e) {
    /* Another warden may put the parent right, that is switch it off, between our two steps: then
     * the second fails with ENOENT. */
    for (int i = 0; i < ENABLE_ROUNDS; i++) {
        if (enable_in_parent(r, e) < 0)
            break;
        if (switch_controllers(r->dirs[0], '+', ROLES_V2, e) == 0)
            return 0;
        if (e->code != ENOENT)
            break;
    }
    if (e->code == ENOENT)
        e->code = EAGAIN;
    return err_wrap(e, "switch controllers on at %.80s", r->where);
}

/* The directory of another warden beside us, or -1. */
static int open_neighbour(const struct cgroup_root *r) {
    int fd = openat(r->parents[0], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        fd_close(&fd);
        return -1;
    }
    int found = -1;
    for (struct dirent *ent; found < 0 && (ent = readdir(d));)
        if (strcmp(ent->d_name, r->name) != 0 && cgroup_name_pid(ent->d_name, strlen(ent->d_name)))
            found = openat(r->parents[0], ent->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    closedir(d);
    return found;
}

/* What cannot be undone here (a neighbour that goes at the same moment) stays for the next sweep.
 */
static void v2_disable(struct cgroup_root *r) {
    struct err e;
    AUTO_FD leaf = openat(r->dirs[0], CGROUP_SELF, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (leaf >= 0)
        r->enabled = ROLES_V2;
    (void)switch_controllers(r->dirs[0], '-', ROLES_V2, &e);
    int off = switch_controllers(r->parents[0], '-', r->enabled, &e);
    r->enabled = 0;
    if (leaf < 0)
        return;
    if (off == 0) {
        (void)move_all(leaf, r->parents[0], &e);
    } else {
        AUTO_FD heir = open_neighbour(r);
        if (heir >= 0)
            (void)move_into_leaf(leaf, heir, &e);
    }
    (void)unlinkat(r->dirs[0], CGROUP_SELF, AT_REMOVEDIR);
}

static void v2_inherit(const struct cgroup_root *r, int dead) {
    AUTO_FD leaf = openat(dead, CGROUP_SELF, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (leaf < 0)
        return;
    struct err e;
    (void)move_into_leaf(leaf, r->dirs[0], &e);
    (void)unlinkat(dead, CGROUP_SELF, AT_REMOVEDIR);
}

static int v2_prepare(const struct cgroup_slot *s, struct err *e) {
    if (file_write_at(s->dirs[0], "memory.swap.max", "0", e) < 0 && e->code != ENOENT)
        return -1;
    return 0;
}

/* Whoever joins in between by the descriptor of before blocks it; the next look moves it. */
static int v2_split(const struct cgroup_root *r, struct cgroup_slot *s, struct err *e) {
    (void)r;
    if (s->split)
        return 0;
    if (mkdirat(s->dirs[0], CGROUP_MAIN, 0755) < 0 && errno != EEXIST)
        return err_sys(e, "make the control group " CGROUP_MAIN);
    AUTO_FD leaf = openat(s->dirs[0], CGROUP_MAIN, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (leaf < 0)
        return err_sys(e, "open the control group " CGROUP_MAIN);
    AUTO_FD procs = openat(leaf, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    if (procs < 0)
        return err_sys(e, "open cgroup.procs");
    int done = -1;
    for (int i = 0; done < 0 && i < ENABLE_ROUNDS; i++) {
        if (move_all(s->dirs[0], leaf, e) < 0)
            return -1;
        done = switch_controllers(s->dirs[0], '+', ROLES_V2, e);
        if (done < 0 && e->code != EBUSY)
            return -1;
    }
    if (done < 0)
        return -1;
    fd_close(&s->procs[0]);
    s->procs[0] = fd_take(&procs);
    s->split = true;
    return 0;
}

static void v2_let_go(const struct cgroup_slot *sub) {
    (void)sub;
}

static int v2_limit(const struct cgroup_slot *s, const struct cgroup_limits *l, struct err *e) {
    char text[48];
    if (cgroup_knob_write_number(s, KNOB_MEMORY_MAX, l->memory_bytes, e) < 0 ||
        cgroup_knob_write_number(s, KNOB_PIDS_MAX, l->pids, e) < 0)
        return -1;
    snprintf(text, sizeof text, "max %u", CPU_PERIOD_US);
    if (l->cpus_percent)
        snprintf(text, sizeof text, "%" PRIu64 " %u",
                 (uint64_t)l->cpus_percent * CPU_PERIOD_US / 100, CPU_PERIOD_US);
    return cgroup_knob_write(s, KNOB_CPU_MAX, text, e);
}

static bool v2_restart_peak(const struct cgroup_slot *s) {
    struct err e;
    return cgroup_knob_write(s, KNOB_MEMORY_PEAK, "0", &e) == 0 ||
           faccessat(s->dirs[0], "memory.peak", F_OK, 0) < 0;
}

const struct cgroup_ops cgroup_v2_ops = {
    .knobs =
        {
            /* New kernels reclaim and kill for whoever lowers it, unless that one must not wait. */
            [KNOB_MEMORY_MAX] = {ROLE_MEMORY, "memory.max", O_RDWR | O_NONBLOCK},
            [KNOB_MEMORY_PEAK] = {ROLE_MEMORY, "memory.peak", O_RDWR},
            [KNOB_MEMORY_USAGE] = {ROLE_MEMORY, "memory.current", O_RDONLY},
            [KNOB_MEMORY_STAT] = {ROLE_MEMORY, "memory.stat", O_RDONLY},
            [KNOB_MEMORY_OOM] = {ROLE_MEMORY, "memory.events", O_RDONLY},
            [KNOB_CPU_MAX] = {ROLE_CPU, "cpu.max", O_RDWR},
            [KNOB_CPU_USAGE] = {ROLE_CPU, "cpu.stat", O_RDONLY},
            [KNOB_PIDS_MAX] = {ROLE_PIDS, "pids.max", O_RDWR},
            [KNOB_PIDS_EVENTS] = {ROLE_PIDS, "pids.events", O_RDONLY},
            [KNOB_PIDS_USAGE] = {ROLE_PIDS, "pids.current", O_RDONLY},
            [KNOB_FREEZE] = {ROLE_PIDS, "cgroup.freeze", O_RDWR},
        },
    .join = "cgroup.procs",
    .file_stat = "file",
    .shrink = {"memory.reclaim", "1T"}, /* as much as there is */
    .find = v2_find,
    .enable = v2_enable,
    .disable = v2_disable,
    .inherit = v2_inherit,
    .prepare = v2_prepare,
    .split = v2_split,
    .let_go = v2_let_go,
    .limit = v2_limit,
    .restart_peak = v2_restart_peak,
};
