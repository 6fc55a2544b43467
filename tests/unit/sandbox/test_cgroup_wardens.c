/* sandbox/cgroup: what wardens beside each other and one after the other do to their control
 * groups. Skipped where there are none. */

#include "cgroup_fixture.h"

#include "sandbox/cgroup_attach.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

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

int main(void) {
    const struct CMUnitTest tests[] = {
        REAL(sweeps_a_dead_wardens_groups_and_spares_a_living_ones),
        cmocka_unit_test(the_next_warden_puts_right_what_a_dead_one_left),
        cmocka_unit_test(wardens_side_by_side_close_in_any_order),
        cmocka_unit_test(close_kills_and_removes_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
