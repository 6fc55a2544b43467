/* Signals to the processes that init knows by number, to their groups and to all that came of them.
 */

#include "base/fd.h"
#include "init/procs.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct procs procs;

static int fresh(void **state) {
    (void)state;
    memset(&procs, 0, sizeof procs);
    procs.live = true; /* here all are in one user namespace, ours: which is to count for nothing */
    return 0;
}

/* A child with a session of its own, as kernels have, with `depth` descendants, the last of which
 * leaves the session. `life` is at its end when all of them are gone; they go when `stay` is
 * closed.
 */
struct family {
    pid_t pid;
    int life, stay;
};

static _Noreturn void live(int depth, int up, int stay) {
    char c;
    setsid();
    while (depth > 0 && fork() == 0)
        if (--depth == 0)
            setsid();
    if (depth == 0)
        (void)!write(up, "", 1);
    (void)!read(stay, &c, 1);
    _exit(0);
}

static struct family start(int depth) {
    int up[2], life[2], stay[2];
    char c;
    assert_int_equal(pipe(up) | pipe(life) | pipe(stay), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(stay[1]);
        live(depth, up[1], stay[0]);
    }
    close(up[1]);
    close(life[1]);
    close(stay[0]);
    assert_int_equal(read(up[0], &c, 1), 1);
    close(up[0]);
    return (struct family){.pid = pid, .life = life[0], .stay = stay[1]};
}

static bool is_gone(const struct family *f, int wait_ms) {
    struct pollfd p = {.fd = f->life, .events = POLLIN};
    return poll(&p, 1, wait_ms) == 1;
}

static void finish(struct family *f) {
    fd_close(&f->stay);
    assert_true(is_gone(f, 20000));
    fd_close(&f->life);
}

static int end_of(pid_t pid) {
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

static void test_a_signal_to_the_process_leaves_its_children(void **state) {
    (void)state;
    struct family f = start(1);
    int listener[2]; /* stands for one: open while somebody is left */
    assert_int_equal(pipe(listener), 0);
    procs_add(&procs, 3, f.pid, listener[0]);
    assert_int_equal(procs_signal(&procs, 3, SIGTERM, SIGNAL_PROCESS), 0);
    assert_int_equal(end_of(f.pid), SIGTERM);
    assert_false(is_gone(&f, 0));
    assert_int_equal(procs_signal(&procs, 3, SIGTERM, SIGNAL_PROCESS), ESRCH);
    assert_int_equal(procs_signal(&procs, 3, SIGTERM, SIGNAL_GROUP), ESRCH);
    assert_int_equal(procs_pid(&procs, 3), f.pid); /* for the sake of its tree */
    fd_close(&procs.all[0].listener);
    assert_int_equal(procs_signal(&procs, 3, SIGTERM, SIGNAL_TREE), ESRCH);
    assert_int_equal(procs_pid(&procs, 3), 0);
    close(listener[1]);
    finish(&f);
}

static void test_a_killed_tree_leaves_nobody(void **state) {
    (void)state;
    struct family f = start(5), neighbour = start(1);
    procs_add(&procs, 0, f.pid, -1);
    procs_add(&procs, 1, neighbour.pid, -1);
    assert_int_equal(procs_signal(&procs, 0, SIGKILL, SIGNAL_TREE), 0);
    assert_int_equal(end_of(f.pid), SIGKILL);
    assert_true(is_gone(&f, 20000));
    assert_false(is_gone(&neighbour, 0));
    assert_int_equal(procs_signal(&procs, 1, SIGKILL, SIGNAL_TREE), 0);
    assert_int_equal(end_of(neighbour.pid), SIGKILL);
    finish(&f);
    finish(&neighbour);
}

static void test_a_group_gets_a_signal_together(void **state) {
    (void)state;
    struct family f = start(2); /* the last one is in another session, and stays */
    procs_add(&procs, 7, f.pid, -1);
    assert_int_equal(procs_signal(&procs, 7, SIGTERM, SIGNAL_GROUP), 0);
    assert_int_equal(end_of(f.pid), SIGTERM);
    assert_false(is_gone(&f, 0));
    finish(&f);
}

static void test_nonsense_is_refused(void **state) {
    (void)state;
    static const struct {
        uint32_t number, sig, scope;
        int want;
    } cases[] = {{9, SIGTERM, SIGNAL_PROCESS, ESRCH},
                 {9, SIGTERM, SIGNAL_TREE, ESRCH},
                 {9, 0, SIGNAL_PROCESS, EINVAL},
                 {9, 32, SIGNAL_PROCESS, EINVAL},
                 {9, SIGTERM, SIGNAL_TREE + 1, EINVAL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(procs_signal(&procs, cases[i].number, cases[i].sig, cases[i].scope),
                         cases[i].want);
}

static void test_there_is_room_for_so_many_and_again_when_one_ends(void **state) {
    (void)state;
    struct family f[PROCS_MAX];
    for (uint32_t i = 0; i < PROCS_MAX; i++) {
        assert_false(procs_full(&procs));
        f[i] = start(0);
        procs_add(&procs, i, f[i].pid, -1);
    }
    assert_true(procs_full(&procs));
    assert_int_equal(procs_signal(&procs, 5, SIGKILL, SIGNAL_PROCESS), 0);
    assert_int_equal(end_of(f[5].pid), SIGKILL);
    assert_false(procs_full(&procs));
    for (uint32_t i = 0; i < PROCS_MAX; i++) {
        if (i != 5) {
            assert_int_equal(procs_signal(&procs, i, SIGKILL, SIGNAL_TREE), 0);
            assert_int_equal(end_of(f[i].pid), SIGKILL);
        }
        finish(&f[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_signal_to_the_process_leaves_its_children, fresh),
        cmocka_unit_test_setup(test_a_killed_tree_leaves_nobody, fresh),
        cmocka_unit_test_setup(test_a_group_gets_a_signal_together, fresh),
        cmocka_unit_test_setup(test_nonsense_is_refused, fresh),
        cmocka_unit_test_setup(test_there_is_room_for_so_many_and_again_when_one_ends, fresh),
    };
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    return failed;
}
