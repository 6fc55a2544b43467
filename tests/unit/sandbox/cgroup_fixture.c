/* See cgroup_fixture.h. */

#include "cgroup_fixture.h"

#include "base/fd.h"
#include "sandbox/cgroup_attach.h"
#include "sandbox/cgroup_find.h"

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

const struct cgroup_limits limits = {.memory_bytes = 32 * MIB, .pids = 16};

void read_own_groups(char *out, size_t cap) {
    struct err e;
    assert_int_equal(file_read_at(AT_FDCWD, "/proc/self/cgroup", out, cap, &e), 0);
}

int real_open(void **state) {
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

int real_close(void **state) {
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

struct real *real_or_skip(void **state) {
    struct real *x = *state;
    if (x->root.kind == CGROUP_NONE) {
        print_message("# no control groups: %s\n", x->root.why);
        skip();
    }
    return x;
}

pid_t child_start(const struct cgroup_slot *s, int (*work)(void *arg), void *arg) {
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

int child_end(pid_t pid) {
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int work_wait(void *arg) {
    (void)arg;
    while (pause() < 0)
        continue;
    return 0;
}

int work_allocate(void *arg) {
    size_t bytes = *(size_t *)arg;
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < bytes; i += 4096)
        *(volatile char *)(p + i) = 1;
    return 7;
}

void freeze_and_wait(const struct real *x) {
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
