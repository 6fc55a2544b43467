/* engine/core/cgroup_fds: limits in, usage out, for both kinds of control groups. Files stand for
 * the kernel's: both are read and written at their beginning. */

#include "base/fd.h"
#include "engine/core/cgroup_fds.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static struct cgroup_fds k;

static int setup(void **state) {
    (void)state;
    cgroup_fds_init(&k);
    for (int i = 0; i < KNOBS_; i++) {
        k.fds[i] = memfd_create("knob", MFD_CLOEXEC);
        assert_true(k.fds[i] >= 0);
    }
    return 0;
}

static int teardown(void **state) {
    (void)state;
    cgroup_fds_done(&k);
    return 0;
}

static void set(enum cgroup_knob knob, const char *text) {
    assert_int_equal(ftruncate(k.fds[knob], 0), 0);
    assert_int_equal(pwrite(k.fds[knob], text, strlen(text), 0), strlen(text));
}

static void assert_knob(enum cgroup_knob knob, const char *wanted) {
    char text[64];
    ssize_t n = pread(k.fds[knob], text, sizeof text - 1, 0);
    assert_true(n >= 0);
    text[n] = '\0';
    assert_string_equal(text, wanted);
}

static void limits_are_written_as_the_kernel_reads_them(void **state) {
    struct err e;
    (void)state;
    assert_int_equal(cgroup_fds_set_memory(&k, 1ull << 40, &e), 0);
    assert_int_equal(cgroup_fds_set_pids(&k, 64, &e), 0);
    assert_int_equal(cgroup_fds_set_cpus(&k, 150, &e), 0);
    assert_knob(KNOB_MEMORY_MAX, "1099511627776");
    assert_knob(KNOB_PIDS_MAX, "64");
    assert_knob(KNOB_CPU_MAX, "150000"); /* of 100000 µs */
}

static void a_limit_that_cannot_be_set_is_an_error(void **state) {
    struct err e;
    (void)state;
    fd_close(&k.fds[KNOB_PIDS_MAX]);
    k.fds[KNOB_PIDS_MAX] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(cgroup_fds_set_pids(&k, 64, &e), -1);
    assert_non_null(strstr(e.text, "64"));
}

static const struct {
    const char *name, *before, *after;
    uint64_t us;
} cpu[] = {
    {"v1 counts nanoseconds", "1000000\n", "251000000\n", 250000},
    {"v2 has a line for it", "usage_usec 1000\nuser_usec 1\n", "usage_usec 251000\nuser_usec 9\n",
     250000},
    {"nothing yet", "0\n", "0\n", 0},
    {"a counter never goes back", "5000000\n", "1000000\n", 0},
    {"not a number", "x\n", "y\n", 0},
    {"empty", "", "", 0},
};

static void cpu_time_counts_from_the_beginning_of_the_execution(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cpu / sizeof *cpu; i++) {
        set(KNOB_CPU_USAGE, cpu[i].before);
        cgroup_fds_begin(&k);
        set(KNOB_CPU_USAGE, cpu[i].after);
        if (cgroup_fds_cpu_us(&k) != cpu[i].us)
            fail_msg("%s: %llu", cpu[i].name, (unsigned long long)cgroup_fds_cpu_us(&k));
    }
}

static void the_peak_is_read_as_it_is(void **state) {
    (void)state;
    set(KNOB_MEMORY_PEAK, "123456789\n");
    assert_int_equal(cgroup_fds_usage(&k).memory_peak, 123456789);
}

/* Counters only grow, and a slot serves again. */
static void an_event_counts_for_the_sandbox_in_which_it_happened(void **state) {
    (void)state;
    set(KNOB_MEMORY_OOM, "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    set(KNOB_PIDS_EVENTS, "max 0\n");
    assert_true(cgroup_fds_usage(&k).out_of_memory);
    assert_false(cgroup_fds_usage(&k).out_of_memory);
    set(KNOB_MEMORY_OOM, "low 0\nhigh 0\nmax 7\noom 3\noom_kill 3\noom_group_kill 0\n");
    set(KNOB_PIDS_EVENTS, "max 4\n");
    struct cgroup_usage u = cgroup_fds_usage(&k);
    assert_true(u.out_of_memory);
    assert_true(u.out_of_pids);
    u = cgroup_fds_usage(&k);
    assert_false(u.out_of_memory);
    assert_false(u.out_of_pids);
}

static void without_control_groups_nothing_is_done_and_nothing_known(void **state) {
    struct err e;
    (void)state;
    struct cgroup_fds none;
    cgroup_fds_init(&none);
    assert_false(cgroup_fds_there(&none));
    assert_int_equal(cgroup_fds_set_memory(&none, 1, &e), 0);
    assert_int_equal(cgroup_fds_set_pids(&none, 1, &e), 0);
    assert_int_equal(cgroup_fds_set_cpus(&none, 1, &e), 0);
    cgroup_fds_begin(&none);
    struct cgroup_usage u = cgroup_fds_usage(&none);
    assert_true(u.cpu_us == 0 && u.memory_peak == 0 && !u.out_of_memory && !u.out_of_pids);
    cgroup_fds_done(&none);
}

static void done_closes_and_can_be_used_again(void **state) {
    (void)state;
    int fd = k.fds[KNOB_MEMORY_MAX];
    assert_true(cgroup_fds_there(&k));
    cgroup_fds_done(&k);
    assert_false(cgroup_fds_there(&k));
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void kills_in_groups_below_are_not_this_ones(void **state) {
    (void)state;
    set(KNOB_MEMORY_OOM, "low 0\nhigh 0\nmax 9\noom 5\noom_kill 5\noom_group_kill 0\n");
    k.oom_below = 3;
    assert_int_equal(cgroup_fds_kills(&k), 2);
    assert_true(cgroup_fds_usage(&k).out_of_memory);
    set(KNOB_MEMORY_OOM, "low 0\nhigh 0\nmax 9\noom 5\noom_kill 6\noom_group_kill 0\n");
    k.oom_below = 4;
    assert_false(cgroup_fds_ran_out_of_memory(&k));
    set(KNOB_MEMORY_OOM, "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"); /* v1: its own only */
    assert_int_equal(cgroup_fds_kills(&k), 3);
    assert_true(cgroup_fds_ran_out_of_memory(&k));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(limits_are_written_as_the_kernel_reads_them, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_limit_that_cannot_be_set_is_an_error, setup, teardown),
        cmocka_unit_test_setup_teardown(cpu_time_counts_from_the_beginning_of_the_execution, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_peak_is_read_as_it_is, setup, teardown),
        cmocka_unit_test_setup_teardown(an_event_counts_for_the_sandbox_in_which_it_happened, setup,
                                        teardown),
        cmocka_unit_test(without_control_groups_nothing_is_done_and_nothing_known),
        cmocka_unit_test_setup_teardown(done_closes_and_can_be_used_again, setup, teardown),
        cmocka_unit_test_setup_teardown(kills_in_groups_below_are_not_this_ones, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
