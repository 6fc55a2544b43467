/* engine/kernel/lent: a file that a kernel may read, and that it can neither fill nor keep from
 * being emptied. */

#include "base/fd.h"
#include "engine/kernel/lent.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char text[] = "{\"op\":\"execute\"}";
static int fd = -1;

static int setup(void **state) {
    struct err e;
    (void)state;
    return lent_file(text, strlen(text), &fd, &e);
}

static int teardown(void **state) {
    (void)state;
    fd_close(&fd);
    return 0;
}

static void it_holds_what_is_said(void **state) {
    char got[64] = "";
    (void)state;
    assert_int_equal(pread(fd, got, sizeof got - 1, 0), strlen(text));
    assert_string_equal(got, text);
}

static void assert_cannot_grow(void) {
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(ftruncate(fd, st.st_size + 1), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(pwrite(fd, "x", 1, st.st_size), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(fallocate(fd, 0, st.st_size, 4096), -1);
    assert_int_equal(errno, EPERM);
}

static void it_cannot_grow(void **state) {
    (void)state;
    assert_cannot_grow();
}

static void whoever_has_it_cannot_keep_what_was_in_it(void **state) {
    struct stat st;
    (void)state;
    for (int seal = F_SEAL_SEAL; seal <= F_SEAL_FUTURE_WRITE; seal <<= 1) {
        assert_int_equal(fcntl(fd, F_ADD_SEALS, seal), -1);
        assert_int_equal(errno, EPERM);
    }
    void *mapped = mmap(NULL, strlen(text), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(mapped, MAP_FAILED);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_blocks, 0);
    assert_cannot_grow();
    munmap(mapped, strlen(text));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_holds_what_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(it_cannot_grow, setup, teardown),
        cmocka_unit_test_setup_teardown(whoever_has_it_cannot_keep_what_was_in_it, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
