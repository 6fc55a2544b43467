/* engine/store/store_copy: copies are whole, keep their holes, and keep the bounds. */

#include "store_fixture.h"

#include "base/fd.h"
#include "loop/crew.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void a_copy_has_the_first_bytes(void **state) {
    (void)state;
    struct err e;
    struct store_entry entry;
    AUTO_FD fd = memfd_create("x", MFD_CLOEXEC); /* another file system: by hand */
    assert_int_equal(fd_write_all(fd, "hello world", 11, &e), 0);
    put_file("source", "hello world"); /* the same one */
    AUTO_FD same = openat(dir, "source", O_RDONLY | O_CLOEXEC);
    const int fds[] = {fd, same};
    reopen(boundless);
    for (size_t i = 0; i < COUNT(fds); i++) {
        static const char *const want[] = {"", "hello", "hello world"};
        for (size_t k = 0; k < COUNT(want); k++) {
            assert_int_equal(copy_of("c", fds[i], strlen(want[k]), &entry, &e), 0);
            assert_holds(entry.id, "c", want[k]);
            store_entry_done(&entry);
        }
        assert_int_equal(copy_of("c", fds[i], 12, &entry, &e), -1);
    }
    assert_int_equal(store_usage(store).files, 6);
    assert_int_equal(names_in_dir(), 13);
}

static void a_large_copy_is_whole(void **state) {
    (void)state;
    struct err e;
    struct store_entry entry;
    size_t len = 1000003;
    char *bytes = malloc(len + 1), *got = malloc(len + 1);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    AUTO_FD fd = memfd_create("x", MFD_CLOEXEC);
    assert_int_equal(fd_write_all(fd, bytes, len, &e), 0);
    reopen(boundless);
    assert_int_equal(copy_of("c", fd, len, &entry, &e), 0);
    AUTO_FD found = -1;
    size_t n;
    assert_int_equal(store_find(store, "t", entry.id, NULL, &found, &e), 0);
    assert_int_equal(fd_read_all(found, got, len + 1, &n, &e), 0);
    assert_int_equal(n, len);
    assert_memory_equal(got, bytes, len);
    store_entry_done(&entry);
    free(bytes);
    free(got);
}

#define HOLE (8u << 20)

/* Data, a hole of HOLE bytes, data, and a hole at the end. */
static int file_with_holes(void) {
    int fd = memfd_create("x", MFD_CLOEXEC);
    assert_int_equal(pwrite(fd, "head", 4, 0), 4);
    assert_int_equal(pwrite(fd, "tail", 4, HOLE), 4);
    assert_int_equal(ftruncate(fd, 2 * HOLE), 0);
    return fd;
}

static void assert_has_holes(const char *id) {
    struct err e;
    struct stat st;
    char got[5] = "";
    AUTO_FD fd = -1;
    assert_int_equal(store_find(store, "t", id, NULL, &fd, &e), 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, 2 * HOLE);
    assert_true(st.st_blocks * 512 < HOLE);
    assert_int_equal(pread(fd, got, 4, 0), 4);
    assert_string_equal(got, "head");
    assert_int_equal(pread(fd, got, 4, HOLE), 4);
    assert_string_equal(got, "tail");
}

static void holes_stay_holes(void **state) {
    (void)state;
    struct err e;
    struct store_entry entry;
    AUTO_FD fd = file_with_holes();
    reopen(boundless);
    assert_int_equal(copy_of("c", fd, 2 * HOLE, &entry, &e), 0);
    assert_has_holes(entry.id);
    store_entry_done(&entry);
    assert_int_equal(copy_of("c", fd, 2 * HOLE + 1, &entry, &e), -1); /* it has not that many */
    assert_int_equal(store_usage(store).files, 1);
}

static void on_copied(void *arg, const struct store_entry *entry, const struct err *why) {
    snprintf(arg, STORE_ID_LEN + 1, "%s", why ? "failed" : entry->id);
    loop_stop(loop);
}

static void a_copy_is_made_beside_the_loop(void **state) {
    (void)state;
    struct err e;
    struct crew *crew;
    struct store_copy *copy;
    char id[STORE_ID_LEN + 1] = "";
    int fd = file_with_holes(), short_one = file_with_holes();
    struct store_copy_request q = copy_request("c", &fd, 2 * HOLE);
    q.done = on_copied;
    q.arg = id;
    reopen(boundless);
    assert_int_equal(crew_new(loop, 1, &crew, &e), 0);
    assert_int_equal(store_copy_begin(store, crew, &q, &copy, &e), 0);
    assert_int_equal(fd, -1);
    assert_string_equal(id, "");
    assert_int_equal(loop_run(loop, &e), 0);
    assert_has_holes(id);
    q.fd = &short_one;
    q.size = 3 * HOLE;
    assert_int_equal(store_copy_begin(store, crew, &q, &copy, &e), 0);
    assert_int_equal(loop_run(loop, &e), 0);
    assert_string_equal(id, "failed");
    assert_int_equal(names_in_dir(), 2);
    crew_free(crew);
}

static void a_copy_that_is_left_leaves_nothing(void **state) {
    (void)state;
    struct err e;
    struct crew *crew;
    struct store_copy *copy;
    char id[STORE_ID_LEN + 1] = "";
    int fd = file_with_holes(), other = file_with_holes();
    struct store_copy_request q = copy_request("c", &fd, 2 * HOLE);
    q.done = on_copied;
    q.arg = id;
    reopen((struct store_options){.total_max = 2 * HOLE + STORE_FILE_COST});
    assert_int_equal(crew_new(loop, 1, &crew, &e), 0);
    assert_int_equal(store_copy_begin(store, crew, &q, &copy, &e), 0);
    store_copy_leave(copy);
    assert_int_equal(names_in_dir(), 0);
    q.fd = &other; /* its room is free again */
    assert_int_equal(store_copy_begin(store, crew, &q, &copy, &e), 0);
    assert_int_equal(loop_run(loop, &e), 0); /* one thread: the first is through as well */
    assert_has_holes(id);
    crew_free(crew);
}

static void a_copy_keeps_the_bounds_and_wants_a_regular_file(void **state) {
    (void)state;
    struct err e;
    struct store_entry entry;
    int ends[2];
    AUTO_FD fd = memfd_create("x", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, 100), 0);
    reopen((struct store_options){.file_max = 50, .total_max = 2 * STORE_FILE_COST + 60});
    assert_int_equal(copy_of("c", fd, 51, &entry, &e), -1);
    assert_string_equal(e.kind, "file_too_large");
    assert_int_equal(copy_of("c", fd, UINT64_MAX, &entry, &e), -1);
    assert_string_equal(e.kind, "file_too_large");
    assert_int_equal(copy_of("c", fd, 50, NULL, &e), 0);
    assert_int_equal(copy_of("c", fd, 11, &entry, &e), -1);
    assert_string_equal(e.kind, "disk_full");
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0); /* nobody writes: reading would block */
    assert_int_equal(copy_of("c", ends[0], 5, &entry, &e), -1);
    fd_close_all(ends, 2);
    assert_int_equal(names_in_dir(), 2);
    reopen(boundless);
    assert_int_equal(copy_of("c", fd, UINT64_MAX, &entry, &e), -1);
    assert_string_equal(e.kind, "file_too_large");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_copy_has_the_first_bytes),
        TEST(a_large_copy_is_whole),
        TEST(holes_stay_holes),
        TEST(a_copy_is_made_beside_the_loop),
        TEST(a_copy_that_is_left_leaves_nothing),
        TEST(a_copy_keeps_the_bounds_and_wants_a_regular_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
