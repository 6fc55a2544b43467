/* base/fd: owners close once, whole-file helpers say when a file is too large, memfds are sealed.
 */

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmocka.h>

static bool is_open(int fd) {
    return fcntl(fd, F_GETFD) >= 0;
}

static void closes_once_and_keeps_errno(void **state) {
    (void)state;
    int fd = memfd_create("t", MFD_CLOEXEC), was = fd;
    errno = ENOTTY;
    fd_close(&fd);
    assert_int_equal(fd, -1);
    assert_int_equal(errno, ENOTTY);
    assert_false(is_open(was));
    fd_close(&fd);
    assert_int_equal(fd, -1);
}

static void closes_all_but_those_taken(void **state) {
    (void)state;
    int fds[3] = {memfd_create("a", MFD_CLOEXEC), -1, memfd_create("b", MFD_CLOEXEC)};
    AUTO_FD kept = fd_take(&fds[2]);
    int closed = fds[0];
    fd_close_all(fds, 3);
    assert_false(is_open(closed));
    assert_true(is_open(kept));
}

static void an_owner_closes_at_the_end_of_its_scope(void **state) {
    (void)state;
    int was;
    {
        AUTO_FD fd = memfd_create("t", MFD_CLOEXEC);
        was = fd;
    }
    assert_false(is_open(was));
}

static void flags_are_set_and_cleared(void **state) {
    (void)state;
    struct err e;
    AUTO_FD fd = memfd_create("t", 0);
    assert_int_equal(fd_set_cloexec(fd, 1, &e), 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fd_set_cloexec(fd, 0, &e), 0);
    assert_int_equal(fcntl(fd, F_GETFD), 0);
    assert_int_equal(fd_set_nonblock(fd, &e), 0);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_int_equal(fd_set_nonblock(-1, &e), -1);
    assert_int_equal(e.code, EBADF);
}

static void reads_what_fits_and_refuses_what_does_not(void **state) {
    (void)state;
    static const struct {
        const char *name, *text;
        size_t cap;
        int code;
    } cases[] = {
        {"empty file", "", 4, 0},
        {"one byte less than the room", "abc", 4, 0},
        {"as much as the room, which the NUL needs", "abcd", 4, EFBIG},
        {"more than the room", "abcdefgh", 4, EFBIG},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        AUTO_FD fd = -1;
        assert_int_equal(memfd_of("t", cases[i].text, strlen(cases[i].text), &fd, &e), 0);
        char buf[4];
        size_t len = 0;
        int r = fd_read_all(fd, buf, cases[i].cap, &len, &e);
        if (r != (cases[i].code ? -1 : 0) || (r < 0 && e.code != cases[i].code))
            fail_msg("%s: %d, %s", cases[i].name, r, e.text);
        if (r == 0) {
            assert_string_equal(buf, cases[i].text);
            assert_int_equal(len, strlen(cases[i].text));
        }
    }
}

static void writes_all_of_it_through_a_small_pipe(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    AUTO_FD from = ends[0], to = ends[1];
    struct err e;
    assert_int_equal(fd_write_all(to, "hello", 5, &e), 0);
    fd_close(&to);
    char buf[16];
    assert_int_equal(fd_read_all(from, buf, sizeof buf, NULL, &e), 0);
    assert_string_equal(buf, "hello");
    assert_int_equal(fd_write_all(from, "x", 1, &e), -1);
    assert_int_equal(e.code, EBADF);
}

static void a_memfd_is_sealed_and_at_its_start(void **state) {
    (void)state;
    struct err e;
    AUTO_FD fd = -1;
    assert_int_equal(memfd_of("t", "a\0b", 3, &fd, &e), 0);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
    assert_int_equal(lseek(fd, 0, SEEK_END), 3);
    assert_int_equal(pwrite(fd, "x", 1, 0), -1);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(ftruncate(fd, 10), -1);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

static void files_are_read_and_written_below_a_directory(void **state) {
    (void)state;
    char dir[] = "/tmp/cloche-test-XXXXXX";
    assert_non_null(mkdtemp(dir));
    AUTO_FD at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO_FD file = openat(at, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    struct err e;
    char buf[16];
    assert_int_equal(file_write_at(at, "f", "text\n", &e), 0);
    assert_int_equal(file_read_at(at, "f", buf, sizeof buf, &e), 0);
    assert_string_equal(buf, "text\n");
    assert_int_equal(symlinkat("f", at, "link"), 0);
    assert_int_equal(file_write_at(at, "link", "x", &e), -1);
    assert_int_equal(e.code, ELOOP);
    assert_int_equal(file_read_at(at, "none", buf, sizeof buf, &e), -1);
    assert_string_equal(e.text, "open none: No such file or directory");
    assert_int_equal(file_read_at(at, "f", buf, 3, &e), -1);
    assert_string_equal(e.text, "f: read: more than 2 bytes");
    unlinkat(at, "link", 0);
    unlinkat(at, "f", 0);
    rmdir(dir);
}

static uint64_t changed_ns(int fd) {
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    return (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec;
}

static bool has_exact_stamps(void) {
    struct utsname u;
    int major, minor;
    uname(&u);
    return sscanf(u.release, "%d.%d", &major, &minor) == 2 && major * 100 + minor >= 613;
}

static void a_stamp_is_between_the_changes_before_and_after(void **state) {
    (void)state;
    for (int i = 0; i < 200; i++) {
        AUTO_FD before = memfd_create("before", MFD_CLOEXEC);
        uint64_t first = changed_ns(before); /* seen, so that the next one is exact */
        assert_int_equal(write(before, "x", 1), 1);
        uint64_t stamp = file_stamp_ns();
        AUTO_FD after = memfd_create("after", MFD_CLOEXEC);
        assert_in_range(changed_ns(before), first, UINT64_MAX);
        assert_in_range(changed_ns(after), stamp, UINT64_MAX);
        if (has_exact_stamps())
            assert_in_range(changed_ns(before), 0, stamp - 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closes_once_and_keeps_errno),
        cmocka_unit_test(closes_all_but_those_taken),
        cmocka_unit_test(an_owner_closes_at_the_end_of_its_scope),
        cmocka_unit_test(flags_are_set_and_cleared),
        cmocka_unit_test(reads_what_fits_and_refuses_what_does_not),
        cmocka_unit_test(writes_all_of_it_through_a_small_pipe),
        cmocka_unit_test(a_memfd_is_sealed_and_at_its_start),
        cmocka_unit_test(files_are_read_and_written_below_a_directory),
        cmocka_unit_test(a_stamp_is_between_the_changes_before_and_after),
    };
    return cmocka_run_group_tests_name("base/fd", tests, NULL, NULL);
}
