/* How much memory there is: of the machine, and of the control groups that we are in. */

#include "config/memory.h"

#include "base/buf.h"
#include "base/fd.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MEMINFO "MemTotal:        1024 kB\nMemFree:          10 kB\n"
#define MAX     8

static const struct memory_case {
    const char *name;
    const char *files[MAX]; /* a path and its text, by turns */
    uint64_t expected;
} cases[] = {
    {"nothing tells", {NULL}, 0},
    {"the machine's", {"/proc/meminfo", MEMINFO}, 1 << 20},
    {"of a v2 group",
     {"/proc/meminfo", MEMINFO, "/proc/self/cgroup", "0::/a/b\n", "/sys/fs/cgroup/a/b/memory.max",
      "4096\n"},
     4096},
    {"of the group above",
     {"/proc/meminfo", MEMINFO, "/proc/self/cgroup", "0::/a/b\n", "/sys/fs/cgroup/a/memory.max",
      "8192\n", "/sys/fs/cgroup/a/b/memory.max", "max\n"},
     8192},
    {"of a container, which sees its own group at the top",
     {"/proc/meminfo", MEMINFO, "/proc/self/cgroup", "0::/../x\n", "/sys/fs/cgroup/memory.max",
      "12288\n"},
     12288},
    {"max is no limit",
     {"/proc/meminfo", MEMINFO, "/proc/self/cgroup", "0::/\n", "/sys/fs/cgroup/memory.max",
      "max\n"},
     1 << 20},
    {"of a v1 group",
     {"/proc/meminfo", MEMINFO, "/proc/self/cgroup", "5:cpu:/x\n4:memory:/a\n0::/\n",
      "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "16384\n"},
     16384},
    {"v1's number for none",
     {"/proc/self/cgroup", "4:memory:/\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes",
      "9223372036854771712\n"},
     0},
    {"more than the machine has",
     {"/proc/meminfo", MEMINFO, "/proc/self/cgroup", "0::/\n", "/sys/fs/cgroup/memory.max",
      "999999999\n"},
     1 << 20},
};

static void put(const char *root, const char *path, const char *text) {
    AUTO_BUF name = BUF_INIT;
    struct err e;
    buf_addf(&name, "%s%s", root, path);
    for (char *p = name.data + strlen(root) + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        mkdir(name.data, 0700);
        *p = '/';
    }
    AUTO_FD fd = open(name.data, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text), &e), 0);
}

static void the_smallest_limit_counts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char root[] = "/tmp/test-cli-memory-XXXXXX";
        assert_non_null(mkdtemp(root));
        for (unsigned k = 0; k < MAX && cases[i].files[k]; k += 2)
            put(root, cases[i].files[k], cases[i].files[k + 1]);
        uint64_t found = memory_of_machine(root);
        AUTO_BUF sweep = BUF_INIT;
        buf_addf(&sweep, "rm -r %s", root);
        assert_int_equal(system(sweep.data), 0);
        if (found != cases[i].expected)
            fail_msg("%s: %llu", cases[i].name, (unsigned long long)found);
    }
}

static void this_machine_has_some(void **state) {
    (void)state;
    AUTO_FREE char *text = memory_default_budget();
    assert_true(memory_of_machine("") > 0);
    assert_true(strtoull(text, NULL, 10) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_limit_counts),
        cmocka_unit_test(this_machine_has_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
