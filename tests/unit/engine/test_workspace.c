/* engine/sandbox: what is seen of a workspace without a question. */

#include "base/fd.h"
#include "engine/core/sandbox.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct sandbox sandbox;

static bool is_empty(int fd) {
    sandbox.fds[SANDBOX_WORKSPACE] = fd;
    return sandbox_is_empty(&sandbox);
}

static void a_name_of_any_kind_is_seen(void **state) {
    (void)state;
    char path[] = "/dev/shm/test_workspace.XXXXXX";
    assert_non_null(mkdtemp(path));
    AUTO_FD dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir >= 0 && is_empty(dir));
    assert_int_equal(mkdirat(dir, "d", 0700), 0);
    assert_false(is_empty(dir));
    assert_int_equal(unlinkat(dir, "d", AT_REMOVEDIR), 0);
    assert_true(is_empty(dir));
    assert_int_equal(symlinkat("x", dir, "l"), 0);
    assert_false(is_empty(dir));
    assert_int_equal(renameat(dir, "l", dir, "m"), 0);
    assert_false(is_empty(dir));
    assert_int_equal(unlinkat(dir, "m", 0), 0);
    assert_true(is_empty(dir));
    assert_int_equal(rmdir(path), 0);
}

static void elsewhere_nobody_knows(void **state) {
    (void)state;
    AUTO_FD proc = open("/proc/self/fdinfo", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(proc >= 0);
    assert_false(is_empty(proc));
    assert_false(is_empty(-1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_of_any_kind_is_seen),
        cmocka_unit_test(elsewhere_nobody_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
