/* base/rmtree: a tree goes as a whole, in pieces where that is wanted, and nothing that is linked
 * from it. */

#include "base/fd.h"
#include "base/rmtree.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];
static int dir = -1;

static int enter(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/test-rmtree-XXXXXX");
    dir = mkdtemp(path) ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    return dir >= 0 ? 0 : -1;
}

static int leave(void **state) {
    (void)state;
    fd_close(&dir);
    return rmdir(path);
}

static void put(const char *name) {
    AUTO_FD fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
}

static bool is_there(const char *name) {
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void a_tree_goes_and_what_it_links_to_stays(void **state) {
    (void)state;
    put("outside");
    assert_int_equal(mkdirat(dir, "a", 0700), 0);
    assert_int_equal(mkdirat(dir, "a/b", 0700), 0);
    put("a/b/c");
    assert_int_equal(symlinkat("../outside", dir, "a/link"), 0);
    assert_int_equal(symlinkat("..", dir, "a/up"), 0);
    rmtree(dir, "a");
    assert_false(is_there("a"));
    assert_true(is_there("outside"));
    rmtree(dir, "outside");
    rmtree(dir, "never");
    assert_false(is_there("outside"));
}

static void it_goes_in_pieces(void **state) {
    (void)state;
    char name[32];
    unsigned turns = 0;
    assert_int_equal(mkdirat(dir, "a", 0700), 0);
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "a/%d", i);
        put(name);
    }
    for (bool is_over = false; !is_over; turns++) {
        unsigned budget = 10;
        assert_true(turns < 20);
        is_over = rmtree_some(dir, "a", &budget);
        assert_true(is_over || budget == 0);
        assert_int_equal(is_over, !is_there("a"));
    }
    assert_true(turns > 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_tree_goes_and_what_it_links_to_stays, enter, leave),
        cmocka_unit_test_setup_teardown(it_goes_in_pieces, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
