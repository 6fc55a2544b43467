/* Dropping capabilities, each time in a child. Those that need some to drop are skipped without
 * root. */

#include "sandbox/caps.h"

#include "base/fd.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { NOBODY = 65534 };

static int in_child(int (*body)(void)) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(body());
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* What /proc says of the five sets: all zeros. */
static bool all_sets_empty(void) {
    static const char *const names[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
    struct err e;
    char status[8192];
    if (file_read_at(-1, "/proc/self/status", status, sizeof status, &e) < 0)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char line[64];
        snprintf(line, sizeof line, "\n%s:\t%016d\n", names[i], 0);
        if (!strstr(status, line))
            return false;
    }
    return true;
}

static int drop_as_root(void) {
    struct err e;
    if (caps_drop_all(&e) < 0)
        return 1;
    if (!all_sets_empty())
        return 2;
    int bits = prctl(PR_GET_SECUREBITS);
    if (!(bits & SECBIT_NOROOT) || !(bits & SECBIT_NOROOT_LOCKED))
        return 3;
    /* uid 0, and yet exec gives nothing back. */
    execl("/bin/sh", "sh", "-c", "grep -q 'CapEff:\t0000000000000000' /proc/self/status", NULL);
    return 4;
}

static int drop_after_setuid(void) {
    struct err e;
    if (caps_keep(&e) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
        return 1;
    if (caps_drop_all(&e) < 0)
        return 2;
    if (setuid(0) == 0 || prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0)
        return 3;
    return all_sets_empty() ? 0 : 4;
}

static int drop_after_setuid_without_keeping(void) {
    struct err e;
    if (setuid(NOBODY) < 0)
        return 1;
    if (caps_drop_all(&e) == 0)
        return 2;
    return e.code == EPERM && strstr(e.text, "bounding set") ? 0 : 3;
}

static int drop_inherited_and_ambient(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];
    if (syscall(SYS_capget, &header, sets) < 0)
        return 1;
    sets[0].inheritable = sets[0].permitted;
    if (syscall(SYS_capset, &header, sets) < 0 ||
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0) < 0)
        return 2;
    struct err e;
    if (caps_drop_all(&e) < 0)
        return 3;
    return all_sets_empty() ? 0 : 4;
}

static int drop_twice(void) {
    struct err e;
    if (caps_drop_all(&e) < 0)
        return 1;
    return caps_drop_all(&e) < 0 ? 2 : 0;
}

static void expect_success(int (*body)(void)) {
    if (geteuid() != 0)
        skip();
    assert_int_equal(in_child(body), 0);
}

static void test_root_without_changing_its_uid(void **state) {
    (void)state;
    expect_success(drop_as_root);
}
static void test_after_setuid_with_kept_capabilities(void **state) {
    (void)state;
    expect_success(drop_after_setuid);
}
static void test_a_bounding_set_that_stays_is_an_error(void **state) {
    (void)state;
    expect_success(drop_after_setuid_without_keeping);
}
static void test_inheritable_and_ambient_go_too(void **state) {
    (void)state;
    expect_success(drop_inherited_and_ambient);
}
static void test_dropping_twice_is_fine(void **state) {
    (void)state;
    expect_success(drop_twice);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_root_without_changing_its_uid),
        cmocka_unit_test(test_after_setuid_with_kept_capabilities),
        cmocka_unit_test(test_a_bounding_set_that_stays_is_an_error),
        cmocka_unit_test(test_inheritable_and_ambient_go_too),
        cmocka_unit_test(test_dropping_twice_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
