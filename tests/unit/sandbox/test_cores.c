/* sandbox/cores: whether the host hands core dumps to a program. The pattern is a file of ours: the
 * kernel's own is the whole machine's. */

#include "base/fd.h"
#include "sandbox/cores.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *name, *text;
    bool is_piped;
} cases[] = {
    {"a file in the directory of the program", "core\n", false},
    {"a file elsewhere", "/var/crash/core.%e.%p\n", false},
    {"a program", "|/usr/lib/systemd/systemd-coredump %P %u\n", true},
    {"a socket, since Linux 6.16", "@/run/systemd/coredump\n", true},
    {"a socket that is asked first, since Linux 6.16", "@@/run/systemd/coredump\n", true},
    {"these are no marks within a name", "core|@%p\n", false},
    {"a file that says nothing", "", true},
};

static void a_pattern_tells_whether_dumps_are_handed_to_somebody(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_FD fd = -1;
        char path[40];
        struct err e;
        assert_int_equal(memfd_open("pattern", cases[i].text, strlen(cases[i].text), &fd, &e), 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (cores_are_piped(path) != cases[i].is_piped)
            fail_msg("%s", cases[i].name);
    }
}

static void what_cannot_be_read_counts_as_handed_on(void **state) {
    (void)state;
    assert_true(cores_are_piped("/proc/self/fd/none"));
    assert_true(cores_are_piped("/"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pattern_tells_whether_dumps_are_handed_to_somebody),
        cmocka_unit_test(what_cannot_be_read_counts_as_handed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
