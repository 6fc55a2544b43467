/* sandbox/cgroup: where our groups are found, and what the real ones of this machine do. The second
 * part is the same for v1 and v2; it is skipped where there are no control groups for us.
 * script/test-cgroup-v2 runs it under a kernel with v2. */

#include "base/fd.h"
#include "sandbox/cgroup_internal.h"

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
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB (1u << 20)

/* Finding them */

static const struct {
    const char *name, *mountinfo, *self;
    const char *v2;
    const char *v1[CGROUP_MAX_PROCS + 1]; /* ROLES at PATH, in order */
} place_cases[] = {
    {.name = "pure v2, in a user's session",
     .mountinfo =
         "24 1 0:22 / /sys rw - sysfs sysfs rw\n"
         "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
     .self = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope\n",
     .v2 = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope"},
    {.name = "pure v2, at the root",
     .mountinfo = "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
     .self = "0::/\n",
     .v2 = "/sys/fs/cgroup"},
    {.name = "hybrid: both are reported",
     .mountinfo = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
                  "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                  "33 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                  "34 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
                  "35 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
                  "36 31 0:38 / /sys/fs/cgroup/unified rw shared:9 master:1 - cgroup2 c rw\n",
     .self = "9:name=systemd:/x.service\n4:memory:/x.service\n3:pids:/\n1:cpu,cpuacct:/\n"
             "0::/x.service\n",
     .v2 = "/sys/fs/cgroup/unified/x.service",
     .v1 = {"memory at /sys/fs/cgroup/memory/x.service", "pids at /sys/fs/cgroup/pids",
            "cpu, cpuacct at /sys/fs/cgroup/cpu,cpuacct"}},
    {.name = "v1, one hierarchy a controller",
     .mountinfo = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                  "33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n"
                  "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                  "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                  "37 31 0:34 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
                  "39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n",
     .self = "8:pids:/\n6:freezer:/\n4:memory:/api/57\n3:cpuset:/\n2:cpuacct:/\n1:cpu:/\n",
     .v1 = {"pids at /sys/fs/cgroup/pids", "freezer at /sys/fs/cgroup/freezer",
            "memory at /sys/fs/cgroup/memory/api/57", "cpuacct at /sys/fs/cgroup/cpuacct",
            "cpu at /sys/fs/cgroup/cpu"}},
    {.name = "v1 in a container: the mounts show the container's own group as their root",
     .mountinfo = "40 39 0:29 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
                  "41 39 0:30 /docker/ab /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n",
     .self = "3:memory:/docker/ab\n2:pids:/docker/ab/sub\n",
     .v1 = {"memory at /sys/fs/cgroup/memory", "pids at /sys/fs/cgroup/pids/sub"}},
    {.name = "a group that no mount shows is left out",
     .mountinfo = "40 39 0:29 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
                  "41 39 0:30 /../.. /sys/fs/cgroup/unified ro - cgroup2 cgroup2 rw\n",
     .self = "3:memory:/docker/abc\n0::/a\n"},
    {.name = "the second mount is taken when the first does not show it",
     .mountinfo = "40 39 0:29 /other /mnt/a rw - cgroup2 none rw\n"
                  "41 39 0:29 / /mnt/b rw - cgroup2 none rw\n",
     .self = "0::/mine\n",
     .v2 = "/mnt/b/mine"},
    {.name = "escaped blanks in a mount point",
     .mountinfo = "40 39 0:29 /a\\134b /mnt/my\\040groups rw - cgroup2 none rw\n",
     .self = "0::/a\\b/c\n",
     .v2 = "/mnt/my groups/c"},
    {.name = "nothing mounted",
     .mountinfo = "24 1 0:22 / /sys rw - sysfs sysfs rw\n",
     .self = "0::/\n"},
    {.name = "nothing at all", .mountinfo = "", .self = ""},
    {.name = "lines that make no sense are passed over",
     .mountinfo = "\n \n1\n1 2 3\n1 2 3 / /m\n1 2 3 / /m rw - cgroup2\n- - - - - - - - -\n",
     .self = "\n:\n::\n0::\n0::x\n9:memory\n:memory:/\n"},
};

static void finds_our_own_groups(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof place_cases / sizeof place_cases[0]; i++) {
        struct cgroup_places p;
        cgroup_places_parse(place_cases[i].mountinfo, place_cases[i].self, &p);
        print_message("# %s\n", place_cases[i].name);
        assert_string_equal(p.v2, place_cases[i].v2 ? place_cases[i].v2 : "");
        for (unsigned k = 0; k < p.nv1; k++) {
            char roles[64], got[PATH_MAX + 80];
            snprintf(got, sizeof got, "%s at %s",
                     cgroup_roles_format(p.v1[k].roles, roles, sizeof roles), p.v1[k].path);
            assert_non_null(place_cases[i].v1[k]);
            assert_string_equal(got, place_cases[i].v1[k]);
        }
        assert_null(place_cases[i].v1[p.nv1]);
    }
}

static void knows_its_directories_by_name(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int pid;
    } cases[] = {{"cloche-1", 1},  {"cloche-4194304", 4194304}, {"cloche-", 0}, {"cloche-x", 0},
                 {"cloche-1x", 0}, {"cloche-9999999999", 0},    {"cloche", 0},  {"cloche--1", 0},
                 {"xcloche-1", 0}, {"cloche-1.a", 0},           {"", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(cgroup_name_pid(cases[i].name, strlen(cases[i].name)), cases[i].pid);
}

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

static int work_spin(void *arg) {
    struct timespec t;
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    while (t.tv_sec == 0 && t.tv_nsec < *(long *)arg);
    return 0;
}

static void cpu_time_is_counted(void **state) {
    struct real *x = real_or_skip(state);
    bool v2 = x->root.kind == CGROUP_V2;
    const char *word = v2 ? "usage_usec" : NULL;
    uint64_t unit = v2 ? 1000 : 1, before = knob_number(&x->slot, KNOB_CPU_USAGE, word);
    long spin_ns = 30000000;
    assert_int_equal(child_end(child_start(&x->slot, work_spin, &spin_ns)), 0);
    uint64_t used = (knob_number(&x->slot, KNOB_CPU_USAGE, word) - before) * unit;
    assert_in_range(used, 20000000, 2000000000);
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

/* Another warden, with a process in a slot; that one outlives it. */
struct warden {
    pid_t pid, inmate;
};

static void warden_live(int out, bool freeze) {
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
    work_wait(NULL);
}

static struct warden warden_start(bool freeze) {
    int out[2];
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    struct warden w = {.pid = fork()};
    if (w.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        warden_live(out[1], freeze);
        _exit(1);
    }
    close(out[1]);
    assert_int_equal(read(out[0], &w.inmate, sizeof w.inmate), sizeof w.inmate);
    close(out[0]);
    return w;
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
    kill(dead.pid, SIGKILL);
    assert_int_equal(child_end(dead.pid), 128 + SIGKILL);
    cgroup_sweep(&x->root);
    assert_int_equal(child_end(dead.inmate), 128 + SIGKILL);
    assert_false(warden_has_directory(&x->root, dead.pid));
    assert_true(warden_has_directory(&x->root, alive.pid));
    assert_int_equal(waitpid(alive.inmate, NULL, WNOHANG), -1); /* still its warden's child */

    kill(alive.pid, SIGKILL);
    assert_int_equal(child_end(alive.pid), 128 + SIGKILL);
    cgroup_sweep(&x->root);
    assert_int_equal(child_end(alive.inmate), 128 + SIGKILL);
    assert_false(warden_has_directory(&x->root, alive.pid));
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
        cmocka_unit_test(finds_our_own_groups),
        cmocka_unit_test(knows_its_directories_by_name),
        cmocka_unit_test(without_groups_every_call_succeeds),
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
        REAL(sweeps_a_dead_wardens_groups_and_spares_a_living_ones),
        REAL(a_second_root_of_the_same_process_is_refused),
        cmocka_unit_test(close_kills_and_removes_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
