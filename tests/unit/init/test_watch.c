/* init/watch: a look at processes has an end, however many there are and however fast they come.
 * Here it is the processes of the machine that are looked at. */

#include "base/fd.h"
#include "init/watch.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CHILDREN 4 /* so that there are more than a look goes to here */

static pid_t children[CHILDREN];
static struct watcher watcher; /* large */

static int setup(void **state) {
    (void)state;
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                pause();
        }
    }
    watcher.timer = -1;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (int i = 0; i < CHILDREN; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    round_drop(&watcher.round);
    fd_close(&watcher.timer);
    return 0;
}

static unsigned seen_by_look(unsigned most) {
    (void)watch_look(0, most, cpu_begin(&watcher.cpu));
    return watcher.cpu.looks[watcher.cpu.which].n;
}

static void a_look_ends_after_so_many(void **state) {
    (void)state;
    assert_true(seen_by_look(CPU_MAX_PROCS) > CHILDREN);
    assert_int_equal(seen_by_look(CHILDREN - 1), CHILDREN - 1);
    assert_int_equal(seen_by_look(0), 0);
}

/* In parts that go on until then, by one process at least. */
static unsigned threads_in_round(unsigned most, uint64_t until_ns) {
    struct watch_round r = {.most = most};
    while (!round_go_on(&r, 0, UINT64_MAX, until_ns))
        continue;
    unsigned tasks = r.least.tasks;
    round_drop(&r);
    assert_int_equal(r.most, most);
    return tasks;
}

static void a_round_ends_after_so_many_whether_at_once_or_in_parts(void **state) {
    (void)state;
    unsigned one = watch_look(0, 1, cpu_begin(&watcher.cpu)).tasks;
    for (int parts = 0; parts < 2; parts++) {
        uint64_t until_ns = parts ? 0 : UINT64_MAX;
        assert_true(threads_in_round(CPU_MAX_PROCS, until_ns) >= one + CHILDREN);
        assert_int_equal(threads_in_round(1, until_ns), one);
        assert_int_equal(threads_in_round(0, until_ns), 0);
    }
}

static void how_many_follows_from_the_limit(void **state) {
    (void)state;
    static const struct {
        uint32_t pids;
        unsigned most;
    } cases[] = {{1, 66}, {64, 192}, {0, 4096}};
    static struct procs none;
    const uint8_t network = 0;
    const pid_t nobody = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct watch_plan plan = {
            .limits.pids = cases[i].pids, .network = &network, .procs = &none, .usher = &nobody};
        watch_limits(&watcher, &plan);
        assert_int_equal(watcher.round.most, cases[i].most);
        watch_change(&watcher, &(struct limits){.pids = 8});
        assert_int_equal(watcher.round.most, 80);
        watch_change(&watcher, &plan.limits);
        assert_int_equal(watcher.round.most, cases[i].most);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_look_ends_after_so_many, setup, teardown),
        cmocka_unit_test_setup_teardown(a_round_ends_after_so_many_whether_at_once_or_in_parts,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(how_many_follows_from_the_limit, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
