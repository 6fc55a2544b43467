/* sandbox/cgroup: what the real control groups of this machine do, the same for v1 and v2. Skipped
 * where there are none for us. script/test-cgroup-v2 runs it under kernels with v2. */

#include "base/clock.h"
#include "base/fd.h"
#include "sandbox/cgroup_attach.h"
#include "sandbox/cgroup_files.h"
#include "sandbox/cgroup_ops.h"
#include "sandbox/cgroup_v2.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB (1u << 20)

static void without_groups_every_call_succeeds(void **state) {
    (void)state;
    struct cgroup_root r = {.kind = CGROUP_NONE};
    struct cgroup_limits l = {.memory_bytes = MIB};
    struct cgroup_slot s;
    struct err e;
    cgroup_sweep(&r);
    assert_int_equal(cgroup_slot_make(&r, 3, &l, &s, &e), 0);
    assert_int_equal(s.nknobs, 0);
    assert_int_equal(s.nprocs, 0);
    assert_int_equal(cgroup_attach(s.procs, s.nprocs, &e), 0);
    cgroup_slot_kill(&r, &s);
    assert_true(cgroup_slot_is_clean(&r, &s));
    assert_int_equal(cgroup_slot_reset(&r, &s, &l, &e), 0);
    assert_false(s.renewed);
    cgroup_slot_done(&r, &s, true);
    cgroup_root_close(&r);
}

/* New kernels reclaim and kill for whoever lowers a limit, unless that one must not wait. */
static void a_memory_limit_of_v2_is_lowered_without_waiting(void **state) {
    (void)state;
    assert_true(cgroup_v2_ops.knobs[KNOB_MEMORY_MAX].flags & O_NONBLOCK);
}

/* The real ones */

static const struct cgroup_limits limits = {.memory_bytes = 32 * MIB, .pids = 16};

struct real {
    struct cgroup_root root;
    struct cgroup_slot slot;
    char before[4096]; /* /proc/self/cgroup */
};

static void read_own_groups(char *out, size_t cap) {
    struct err e;
    assert_int_equal(file_read_at(AT_FDCWD, "/proc/self/cgroup", out, cap, &e), 0);
}

static int real_open(void **state) {
    static struct real x;
    struct err e;
    read_own_groups(x.before, sizeof x.before);
    if (cgroup_root_open(&x.root, CGROUP_NONE, &e) < 0 ||
        cgroup_slot_make(&x.root, 0, &limits, &x.slot, &e) < 0) {
        print_error("%s\n", e.text);
        return -1;
    }
    *state = &x;
    return 0;
}

static int real_close(void **state) {
    struct real *x = *state;
    char after[sizeof x->before];
    cgroup_slot_kill(&x->root, &x->slot);
    while (!cgroup_slot_is_clean(&x->root, &x->slot))
        sched_yield();
    cgroup_slot_done(&x->root, &x->slot, true);
    cgroup_root_close(&x->root);
    read_own_groups(after, sizeof after);
    if (strcmp(x->before, after) != 0)
        print_error("before: %s after: %s", x->before, after);
    return strcmp(x->before, after);
}

static struct real *real_or_skip(void **state) {
    struct real *x = *state;
    if (x->root.kind == CGROUP_NONE) {
        print_message("# no control groups: %s\n", x->root.why);
        skip();
    }
    return x;
}

/* A child that joins the slot, says so and then does `work`; its end is its return value. */
static pid_t child_start(const struct cgroup_slot *s, int (*work)(void *arg), void *arg) {
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct err e;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (cgroup_attach(s->procs, s->nprocs, &e) < 0)
            _exit(99);
        (void)!write(ready[1], "r", 1);
        close(ready[0]);
        close(ready[1]);
        _exit(work(arg));
    }
    char c;
    close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    return pid;
}

/* Its exit status, or 128 plus the signal that ended it. */
static int child_end(pid_t pid) {
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static uint64_t knob_number(const struct cgroup_slot *s, enum cgroup_knob k, const char *word) {
    char text[4096];
    ssize_t n = pread(s->knobs[k], text, sizeof text - 1, 0);
    assert_true(n > 0);
    text[n] = '\0';
    const char *at = text;
    if (word) {
        char line[64];
        snprintf(line, sizeof line, "%s ", word);
        at = strstr(text, line);
        assert_non_null(at);
        at += strlen(line);
    }
    return strtoull(at, NULL, 10);
}

static int work_allocate(void *arg) {
    size_t bytes = *(size_t *)arg;
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < bytes; i += 4096)
        *(volatile char *)(p + i) = 1;
    return 7;
}

static int work_wait(void *arg) {
    (void)arg;
    while (pause() < 0)
        continue;
    return 0;
}

static int work_tell_groups(void *arg) {
    char text[4096];
    struct err e;
    if (file_read_at(AT_FDCWD, "/proc/self/cgroup", text, sizeof text, &e) < 0)
        return 1;
    return fd_write_all(*(int *)arg, text, strlen(text), &e) < 0;
}

static void a_child_joins_in_every_hierarchy(void **state) {
    struct real *x = real_or_skip(state);
    int out[2];
    char text[4096], suffix[96];
    struct err e;
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pid_t pid = child_start(&x->slot, work_tell_groups, &out[1]);
    close(out[1]);
    assert_int_equal(fd_read_all(out[0], text, sizeof text, NULL, &e), 0);
    close(out[0]);
    assert_int_equal(child_end(pid), 0);
    snprintf(suffix, sizeof suffix, "/%s/0\n", x->root.name);
    unsigned found = 0;
    for (const char *at = text; (at = strstr(at, suffix)); at++)
        found++;
    assert_int_equal(found, x->root.ndirs);
}

static void a_child_without_privilege_joins_through_the_descriptors(void **state) {
    struct real *x = real_or_skip(state);
    if (geteuid() != 0)
        skip();
    pid_t pid = fork();
    if (pid == 0) {
        struct err e;
        if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
            _exit(1);
        _exit(cgroup_attach(x->slot.procs, x->slot.nprocs, &e) < 0 ? 2 : 0);
    }
    assert_int_equal(child_end(pid), 0);
}

static void memory_over_the_limit_is_killed_and_counted(void **state) {
    struct real *x = real_or_skip(state);
    size_t much = 64 * MIB, little = 8 * MIB;
    uint64_t before = knob_number(&x->slot, KNOB_MEMORY_OOM, "oom_kill");
    assert_int_equal(child_end(child_start(&x->slot, work_allocate, &little)), 7);
    assert_int_equal(knob_number(&x->slot, KNOB_MEMORY_OOM, "oom_kill") - before, 0);
    assert_int_equal(child_end(child_start(&x->slot, work_allocate, &much)), 128 + SIGKILL);
    assert_int_equal(knob_number(&x->slot, KNOB_MEMORY_OOM, "oom_kill") - before, 1);
}

static void one_write_raises_and_lowers_the_memory_limit(void **state) {
    struct real *x = real_or_skip(state);
    size_t much = 64 * MIB;
    struct err e;
    assert_int_equal(cgroup_knob_write(&x->slot, KNOB_MEMORY_MAX, "134217728", &e), 0);
    assert_int_equal(child_end(child_start(&x->slot, work_allocate, &much)), 7);
    assert_int_equal(cgroup_knob_write(&x->slot, KNOB_MEMORY_MAX, "33554432", &e), 0);
    assert_int_equal(child_end(child_start(&x->slot, work_allocate, &much)), 128 + SIGKILL);
}

/* Children of the child: as many as the limit lets it have. */
static int work_fork_many(void *arg) {
    (void)arg;
    for (int n = 0; n < 100; n++) {
        pid_t pid = fork();
        if (pid == 0)
            work_wait(NULL);
        if (pid < 0)
            return errno == EAGAIN ? n : 98;
    }
    return 97;
}

static void processes_over_the_limit_are_refused_and_counted(void **state) {
    struct real *x = real_or_skip(state);
    uint64_t before = knob_number(&x->slot, KNOB_PIDS_EVENTS, "max");
    assert_int_equal(child_end(child_start(&x->slot, work_fork_many, NULL)), limits.pids - 1);
    assert_int_equal(knob_number(&x->slot, KNOB_PIDS_EVENTS, "max") - before, 1);
    assert_false(cgroup_slot_is_clean(&x->root, &x->slot));
}

static uint64_t own_cpu_ns(void) {
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* From here on: what it used before it joined is not the group's. */
static int work_spin(void *arg) {
    uint64_t end = own_cpu_ns() + *(uint64_t *)arg;
    while (own_cpu_ns() < end)
        continue;
    return 0;
}

static void cpu_time_is_counted(void **state) {
    struct real *x = real_or_skip(state);
    bool v2 = x->root.kind == CGROUP_V2;
    const char *word = v2 ? "usage_usec" : NULL;
    uint64_t unit = v2 ? 1000 : 1, before = knob_number(&x->slot, KNOB_CPU_USAGE, word);
    uint64_t spin_ns = 30000000;
    assert_int_equal(child_end(child_start(&x->slot, work_spin, &spin_ns)), 0);
    uint64_t used = (knob_number(&x->slot, KNOB_CPU_USAGE, word) - before) * unit;
    assert_true(used >= spin_ns * 9 / 10); /* a scheduler tick may be counted late */
}

static void freeze_and_wait(const struct real *x) {
    struct err e;
    for (unsigned i = 0; i < x->root.ndirs; i++) {
        int dir = x->slot.dirs[i];
        char text[256] = "";
        if (x->root.kind == CGROUP_V2) {
            assert_int_equal(file_write_at(dir, "cgroup.freeze", "1", &e), 0);
            while (!strstr(text, "frozen 1"))
                assert_int_equal(file_read_at(dir, "cgroup.events", text, sizeof text, &e), 0);
        } else if (x->root.roles[i] & ROLE_FREEZER) {
            assert_int_equal(file_write_at(dir, "freezer.state", "FROZEN", &e), 0);
            while (!strstr(text, "FROZEN"))
                assert_int_equal(file_read_at(dir, "freezer.state", text, sizeof text, &e), 0);
        }
    }
}

static void a_frozen_process_is_killed(void **state) {
    struct real *x = real_or_skip(state);
    pid_t pid = child_start(&x->slot, work_wait, NULL);
    freeze_and_wait(x);
    assert_false(cgroup_slot_is_clean(&x->root, &x->slot));
    cgroup_slot_kill(&x->root, &x->slot);
    assert_int_equal(child_end(pid), 128 + SIGKILL);
    size_t little = MIB; /* and the group is not frozen for the next one */
    struct err e;
    while (!cgroup_slot_is_clean(&x->root, &x->slot))
        sched_yield();
    assert_int_equal(cgroup_slot_reset(&x->root, &x->slot, &limits, &e), 0);
    assert_int_equal(child_end(child_start(&x->slot, work_allocate, &little)), 7);
}

static int work_bomb(void *arg) {
    (void)arg;
    while (fork() >= -1)
        continue;
    return 0;
}

static void a_fork_bomb_is_killed_at_once(void **state) {
    struct real *x = real_or_skip(state);
    pid_t pid = child_start(&x->slot, work_bomb, NULL);
    while (knob_number(&x->slot, KNOB_PIDS_EVENTS, "max") == 0)
        sched_yield();
    cgroup_slot_kill(&x->root, &x->slot);
    assert_int_equal(child_end(pid), 128 + SIGKILL);
    while (!cgroup_slot_is_clean(&x->root, &x->slot)) /* for ever, if one of them got away */
        sched_yield();
}

static void a_reset_slot_has_new_limits_and_a_new_peak(void **state) {
    struct real *x = real_or_skip(state);
    size_t some = 24 * MIB;
    struct err e;
    bool has_peak =
        x->root.kind == CGROUP_V1 || faccessat(x->slot.dirs[0], "memory.peak", F_OK, 0) == 0;
    assert_int_equal(child_end(child_start(&x->slot, work_allocate, &some)), 7);
    if (has_peak)
        assert_in_range(knob_number(&x->slot, KNOB_MEMORY_PEAK, NULL), some, limits.memory_bytes);
    while (!cgroup_slot_is_clean(&x->root, &x->slot))
        sched_yield();

    struct cgroup_limits other = {.memory_bytes = 16 * MIB, .pids = 5, .cpus_percent = 50};
    assert_int_equal(cgroup_slot_reset(&x->root, &x->slot, &other, &e), 0);
    assert_true(knob_number(&x->slot, KNOB_MEMORY_PEAK, NULL) <= x->root.clean_bytes);
    assert_int_equal(knob_number(&x->slot, KNOB_MEMORY_MAX, NULL), other.memory_bytes);
    assert_int_equal(knob_number(&x->slot, KNOB_PIDS_MAX, NULL), other.pids);
    assert_int_equal(knob_number(&x->slot, KNOB_CPU_MAX, NULL), 50000);
    assert_int_equal(child_end(child_start(&x->slot, work_allocate, &some)), 128 + SIGKILL);

    while (!cgroup_slot_is_clean(&x->root, &x->slot))
        sched_yield();
    other.cpus_percent = 0;
    assert_int_equal(cgroup_slot_reset(&x->root, &x->slot, &other, &e), 0);
    char text[32] = "";
    assert_true(pread(x->slot.knobs[KNOB_CPU_MAX], text, sizeof text - 1, 0) > 0);
    assert_string_equal(text, x->root.kind == CGROUP_V2 ? "max 100000\n" : "-1\n");
}

static int work_fill_file(void *arg) {
    static char block[64 << 10];
    for (unsigned i = 0; i < 8 * MIB / sizeof block; i++)
        if (write(*(int *)arg, block, sizeof block) < 0)
            return 1;
    return 0;
}

static void a_slot_is_not_clean_while_its_tmpfs_memory_is_held(void **state) {
    struct real *x = real_or_skip(state);
    int fd = memfd_create("held", MFD_CLOEXEC);
    assert_int_equal(child_end(child_start(&x->slot, work_fill_file, &fd)), 0);
    assert_false(cgroup_slot_is_clean(&x->root, &x->slot));
    close(fd);
    while (!cgroup_slot_is_clean(&x->root, &x->slot))
        sched_yield();
}

static void page_cache_is_left_behind_with_the_old_groups(void **state) {
    struct real *x = real_or_skip(state);
    char name[] = "cgroup-cache-XXXXXX";
    struct err e;
    int fd = mkostemp(name, O_CLOEXEC);
    assert_true(fd >= 0);
    unlink(name);
    struct statfs fs;
    assert_int_equal(fstatfs(fd, &fs), 0);
    if (fs.f_type == TMPFS_MAGIC) {
        close(fd);
        skip();
    }
    assert_int_equal(child_end(child_start(&x->slot, work_fill_file, &fd)), 0);
    assert_true(knob_number(&x->slot, KNOB_MEMORY_USAGE, NULL) > 4 * MIB);
    while (!cgroup_slot_is_clean(&x->root, &x->slot))
        sched_yield();
    assert_int_equal(cgroup_slot_reset(&x->root, &x->slot, &limits, &e), 0);
    close(fd);
    assert_true(x->slot.renewed);
    assert_true(knob_number(&x->slot, KNOB_MEMORY_PEAK, NULL) <= x->root.clean_bytes);
    assert_int_equal(child_end(child_start(&x->slot, work_fork_many, NULL)), limits.pids - 1);
}

static int work_look_up(void *arg) {
    char name[200];
    (void)arg;
    for (unsigned i = 0; i < 20000; i++) {
        snprintf(name, sizeof name, "/sys/%d-%u-%0150u", (int)getpid(), i, i);
        (void)access(name, F_OK);
    }
    return 0;
}

static void names_that_were_looked_up_are_freed(void **state) {
    struct real *x = real_or_skip(state);
    assert_int_equal(child_end(child_start(&x->slot, work_look_up, NULL)), 0);
    uint64_t before = cgroup_slot_bytes(&x->root, &x->slot);
    if (before < 2 * MIB)
        skip(); /* a kernel that does not remember them, or does not charge them */
    pid_t pid = cgroup_slot_shrink(&x->root, &x->slot);
    assert_true(pid > 0);
    assert_int_equal(child_end(pid), 0);
    while (cgroup_slot_bytes(&x->root, &x->slot) >= before / 2)
        sched_yield();
}

static void sub_make(struct real *x, unsigned number, const struct cgroup_limits *l,
                     struct cgroup_slot *ret) {
    struct err e = {0};
    if (cgroup_sub_make(&x->root, &x->slot, number, l, ret, &e) < 0)
        fail_msg("%s", e.text);
}

static void sub_end(struct real *x, struct cgroup_slot *sub) {
    while (!cgroup_sub_remove(&x->root, &x->slot, sub))
        sched_yield();
    cgroup_slot_done(&x->root, sub, false);
}

static void a_sub_has_limits_of_its_own_and_leaves_others_alone(void **state) {
    struct real *x = real_or_skip(state);
    const struct cgroup_limits little = {.memory_bytes = 12 * MIB, .pids = 4, .cpus_percent = 50};
    size_t some = 24 * MIB;
    struct cgroup_slot sub;
    pid_t neighbour = child_start(&x->slot, work_wait, NULL); /* v2: is moved out of the way */
    sub_make(x, 7, &little, &sub);
    assert_int_equal(child_end(child_start(&sub, work_allocate, &some)), 128 + SIGKILL);
    assert_int_equal(knob_number(&sub, KNOB_MEMORY_OOM, "oom_kill"), 1);
    assert_int_equal(child_end(child_start(&x->slot, work_allocate, &some)), 7);
    assert_int_equal(child_end(child_start(&sub, work_fork_many, NULL)), little.pids - 1);
    assert_int_equal(knob_number(&sub, KNOB_CPU_MAX, NULL), 50000);
    assert_int_equal(kill(neighbour, 0), 0);
    sub_end(x, &sub);
    assert_int_equal(kill(neighbour, SIGKILL), 0);
    assert_int_equal(child_end(neighbour), 128 + SIGKILL);
}

static void a_sub_is_bound_by_its_slot(void **state) {
    struct real *x = real_or_skip(state);
    const struct cgroup_limits large = {.memory_bytes = 256 * MIB, .pids = 100};
    size_t much = 64 * MIB;
    struct cgroup_slot sub;
    sub_make(x, 1, &large, &sub);
    assert_int_equal(child_end(child_start(&sub, work_allocate, &much)), 128 + SIGKILL);
    assert_int_equal(child_end(child_start(&sub, work_fork_many, NULL)), limits.pids - 1);
    sub_end(x, &sub);
}

static void a_removed_sub_leaves_the_slot_for_the_next(void **state) {
    struct real *x = real_or_skip(state);
    size_t little = MIB;
    struct cgroup_slot sub;
    struct err e;
    sub_make(x, 3, &limits, &sub);
    pid_t pid = child_start(&sub, work_bomb, NULL);
    while (knob_number(&x->slot, KNOB_PIDS_USAGE, NULL) < limits.pids / 2)
        sched_yield();
    while (!cgroup_sub_remove(&x->root, &x->slot, &sub))
        (void)waitpid(pid, NULL, WNOHANG);
    cgroup_slot_done(&x->root, &sub, false);
    while (!cgroup_slot_is_clean(&x->root, &x->slot))
        sched_yield();
    assert_int_equal(cgroup_slot_reset(&x->root, &x->slot, &limits, &e), 0);
    assert_false(x->slot.split);
    assert_int_equal(child_end(child_start(&x->slot, work_allocate, &little)), 7);
}

static void a_slot_is_killed_with_its_subs(void **state) {
    struct real *x = real_or_skip(state);
    struct cgroup_slot sub;
    sub_make(x, 9, &limits, &sub);
    pid_t pid = child_start(&sub, work_wait, NULL), other = child_start(&x->slot, work_wait, NULL);
    freeze_and_wait(x);
    cgroup_slot_kill(&x->root, &x->slot);
    assert_int_equal(child_end(pid), 128 + SIGKILL);
    assert_int_equal(child_end(other), 128 + SIGKILL);
    cgroup_slot_done(&x->root, &sub, false); /* real_close removes it */
}

/* Another warden, with a process in a slot. It closes properly when `leash` is closed; killed, it
 * leaves that process behind. */
struct warden {
    pid_t pid, inmate;
    int leash;
};

static _Noreturn void warden_live(int in, int out, bool freeze) {
    static struct real w;
    struct err e;
    int joined[2];
    char c;
    if (cgroup_root_open(&w.root, CGROUP_NONE, &e) < 0 ||
        cgroup_slot_make(&w.root, 5, &limits, &w.slot, &e) < 0 || pipe2(joined, O_CLOEXEC) < 0)
        _exit(1);
    pid_t inmate = fork();
    if (inmate == 0) {
        if (cgroup_attach(w.slot.procs, w.slot.nprocs, &e) < 0)
            _exit(1);
        /* Before it can be frozen: what it keeps open would hold its warden's lock. */
        dup2(joined[1], 0);
        close_range(3, ~0u, 0);
        (void)!write(0, "j", 1);
        _exit(work_wait(NULL));
    }
    if (read(joined[0], &c, 1) != 1)
        _exit(1);
    if (freeze)
        freeze_and_wait(&w);
    (void)!write(out, &inmate, sizeof inmate);
    (void)!read(in, &c, 1);
    cgroup_root_close(&w.root);
    _exit(waitpid(inmate, NULL, 0) == inmate ? 0 : 1);
}

static struct warden warden_start(bool freeze) {
    int out[2], in[2];
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    struct warden w = {.pid = fork(), .leash = in[1]};
    if (w.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(in[1]);
        warden_live(in[0], out[1], freeze);
    }
    close(in[0]);
    close(out[1]);
    assert_int_equal(read(out[0], &w.inmate, sizeof w.inmate), sizeof w.inmate);
    close(out[0]);
    return w;
}

static void warden_kill(struct warden *w) {
    kill(w->pid, SIGKILL);
    assert_int_equal(child_end(w->pid), 128 + SIGKILL);
    close(w->leash);
}

static void warden_close(struct warden *w) {
    close(w->leash);
    assert_int_equal(child_end(w->pid), 0);
}

static bool warden_has_directory(const struct cgroup_root *r, pid_t pid) {
    char name[32];
    snprintf(name, sizeof name, "cloche-%d", (int)pid);
    for (unsigned i = 0; i < r->ndirs; i++)
        if (faccessat(r->parents[i], name, F_OK, 0) == 0)
            return true;
    return false;
}

static void sweeps_a_dead_wardens_groups_and_spares_a_living_ones(void **state) {
    struct real *x = real_or_skip(state);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* the inmates come to us */
    struct warden dead = warden_start(true), alive = warden_start(false);
    warden_kill(&dead);
    cgroup_sweep(&x->root);
    assert_int_equal(child_end(dead.inmate), 128 + SIGKILL);
    assert_false(warden_has_directory(&x->root, dead.pid));
    assert_true(warden_has_directory(&x->root, alive.pid));
    assert_int_equal(waitpid(alive.inmate, NULL, WNOHANG), -1); /* still its warden's child */

    warden_kill(&alive);
    cgroup_sweep(&x->root);
    assert_int_equal(child_end(alive.inmate), 128 + SIGKILL);
    assert_false(warden_has_directory(&x->root, alive.pid));
}

/* v2: the first warden of a group moves all processes of that group into a leaf of its own. */
static void the_next_warden_puts_right_what_a_dead_one_left(void **state) {
    (void)state;
    char before[4096], after[4096];
    struct cgroup_root r;
    struct err e;
    read_own_groups(before, sizeof before);
    assert_int_equal(cgroup_root_open(&r, CGROUP_NONE, &e), 0);
    bool none = r.kind == CGROUP_NONE;
    cgroup_root_close(&r);
    if (none)
        skip();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    struct warden dead = warden_start(false);
    warden_kill(&dead);
    assert_int_equal(cgroup_root_open(&r, CGROUP_NONE, &e), 0);
    cgroup_sweep(&r);
    assert_int_equal(child_end(dead.inmate), 128 + SIGKILL);
    assert_false(warden_has_directory(&r, dead.pid));
    cgroup_root_close(&r);
    read_own_groups(after, sizeof after);
    assert_string_equal(after, before);
}

static void wardens_side_by_side_close_in_any_order(void **state) {
    (void)state;
    char before[4096], after[4096];
    struct cgroup_root r;
    struct err e;
    read_own_groups(before, sizeof before);
    for (int first = 0; first < 2; first++) {
        assert_int_equal(cgroup_root_open(&r, CGROUP_NONE, &e), 0);
        bool none = r.kind == CGROUP_NONE;
        if (none || first == 0)
            cgroup_root_close(&r);
        if (none)
            skip();
        struct warden other = warden_start(false);
        if (first == 0)
            assert_int_equal(cgroup_root_open(&r, CGROUP_NONE, &e), 0);
        warden_close(&other);
        assert_false(warden_has_directory(&r, other.pid));
        cgroup_root_close(&r);
        read_own_groups(after, sizeof after);
        assert_string_equal(after, before);
    }
}

static void a_second_root_of_the_same_process_is_refused(void **state) {
    struct real *x = real_or_skip(state);
    struct cgroup_root again;
    struct err e;
    assert_int_equal(cgroup_root_open(&again, x->root.kind, &e), -1);
    size_t little = MIB; /* and the first is untouched */
    assert_int_equal(child_end(child_start(&x->slot, work_allocate, &little)), 7);
}

static void close_kills_and_removes_everything(void **state) {
    (void)state;
    struct cgroup_root r;
    struct cgroup_slot s[3];
    struct err e;
    assert_int_equal(cgroup_root_open(&r, CGROUP_NONE, &e), 0);
    if (r.kind == CGROUP_NONE)
        skip();
    int parents[CGROUP_MAX_PROCS];
    unsigned n = r.ndirs;
    for (unsigned i = 0; i < n; i++)
        parents[i] = dup(r.parents[i]);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(cgroup_slot_make(&r, i, &limits, &s[i], &e), 0);
    pid_t pid = child_start(&s[1], work_wait, NULL);
    for (unsigned i = 0; i < 3; i++)
        cgroup_slot_done(&r, &s[i], false);
    cgroup_root_close(&r);
    assert_int_equal(child_end(pid), 128 + SIGKILL);
    char name[32];
    snprintf(name, sizeof name, "cloche-%d", (int)getpid());
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(faccessat(parents[i], name, F_OK, 0), -1);
        close(parents[i]);
    }
}

#define REAL(f) cmocka_unit_test_setup_teardown(f, real_open, real_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_groups_every_call_succeeds),
        cmocka_unit_test(a_memory_limit_of_v2_is_lowered_without_waiting),
        REAL(a_child_joins_in_every_hierarchy),
        REAL(a_child_without_privilege_joins_through_the_descriptors),
        REAL(memory_over_the_limit_is_killed_and_counted),
        REAL(one_write_raises_and_lowers_the_memory_limit),
        REAL(processes_over_the_limit_are_refused_and_counted),
        REAL(cpu_time_is_counted),
        REAL(a_frozen_process_is_killed),
        REAL(a_fork_bomb_is_killed_at_once),
        REAL(a_reset_slot_has_new_limits_and_a_new_peak),
        REAL(a_slot_is_not_clean_while_its_tmpfs_memory_is_held),
        REAL(page_cache_is_left_behind_with_the_old_groups),
        REAL(names_that_were_looked_up_are_freed),
        REAL(a_sub_has_limits_of_its_own_and_leaves_others_alone),
        REAL(a_sub_is_bound_by_its_slot),
        REAL(a_removed_sub_leaves_the_slot_for_the_next),
        REAL(a_slot_is_killed_with_its_subs),
        REAL(sweeps_a_dead_wardens_groups_and_spares_a_living_ones),
        REAL(a_second_root_of_the_same_process_is_refused),
        cmocka_unit_test(the_next_warden_puts_right_what_a_dead_one_left),
        cmocka_unit_test(wardens_side_by_side_close_in_any_order),
        cmocka_unit_test(close_kills_and_removes_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
