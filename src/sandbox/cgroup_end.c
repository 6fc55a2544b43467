/* See cgroup_end.h. */

#include "sandbox/cgroup_end.h"

#include "base/clock.h"
#include "base/fd.h"
#include "sandbox/cgroup_files.h"
#include "sandbox/cgroup_find.h"
#include "sandbox/cgroup_ops.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define CLEAR_MS 2000 /* for killed processes to be gone */

/* A task frozen by v1 does not die of SIGKILL before it is thawed; v2's does, but its group would
 * stay frozen for the next one. */
void cgroup_thaw(const struct cgroup_root *r, unsigned i, int dir) {
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

static void sub_kill_named(int dir, const char *name, struct walk *w) {
    AUTO_FD fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        cgroup_kill(w->r, w->i, fd);
}

/* cgroup.kill (v2, Linux 5.14) misses nobody. Without it a fork bomb could outrun us: no forks from
 * here on, and a second pass for those that were under way. (What counts for a group counts for
 * those below, too.) */
void cgroup_kill(const struct cgroup_root *r, unsigned i, int dir) {
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
int cgroup_remove(int parent, const char *name, int dir) {
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
        cgroup_thaw(w->r, w->i, fd);
}

static void slot_end_named(int dir, const char *name, struct walk *w) {
    AUTO_FD fd = slot_open_named(dir, name);
    if (fd < 0)
        return;
    cgroup_kill(w->r, w->i, fd);
    if (cgroup_remove(dir, name, fd) < 0)
        w->left++;
}

/* Kills and removes the slots in a warden's directories, one per hierarchy or -1. Waits until they
 * are gone: there is no event for the death of somebody else's children that both versions have. */
void cgroup_clear(const struct cgroup_root *r, const int *dirs) {
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

/* What dead wardens left */

void cgroup_sweep_name(const struct cgroup_root *r, const char *name) {
    int dirs[CGROUP_MAX_PROCS];
    memset(dirs, -1, sizeof dirs);
    bool dead = true;
    for (unsigned i = 0; i < r->ndirs; i++) {
        dirs[i] = openat(r->parents[i], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dirs[i] >= 0 && flock(dirs[i], LOCK_EX | LOCK_NB) < 0)
            dead = false;
    }
    if (dead) {
        cgroup_clear(r, dirs);
        for (unsigned i = 0; i < r->ndirs; i++)
            if (dirs[i] >= 0) {
                cgroup_ops_of(r)->inherit(r, dirs[i]);
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
        cgroup_sweep_name(w->r, name);
}

void cgroup_sweep(const struct cgroup_root *r) {
    struct walk w = {.r = r};
    for (; r->kind != CGROUP_NONE && w.i < r->ndirs; w.i++)
        dir_each(r->parents[w.i], sweep_dead, &w);
}
