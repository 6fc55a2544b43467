/* sandbox/cgroup: what the real control groups of this machine do, the same for v1 and v2. Skipped
 * where there are none for us. script/test-cgroup-v2 runs it under kernels with v2. */

#include "cgroup_fixture.h"

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

static void a_second_root_of_the_same_process_is_refused(void **state) {
    struct real *x = real_or_skip(state);
    struct cgroup_root again;
    struct err e;
    assert_int_equal(cgroup_root_open(&again, x->root.kind, &e), -1);
    size_t little = MIB; /* and the first is untouched */
    assert_int_equal(child_end(child_start(&x->slot, work_allocate, &little)), 7);
}

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
        REAL(a_second_root_of_the_same_process_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
