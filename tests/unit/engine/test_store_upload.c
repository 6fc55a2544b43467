/* engine/store/upload: names and bounds of new files, and what is left of those that fail. */

#include "store_fixture.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void any_name_comes_back_also_after_a_restart(void **state) {
    (void)state;
    char *longest = repeat("x", 1024), *too_long = repeat("x", 1025);
    char *uneven = repeat("\xe6\x95\xb0", 400), *uneven_cut = repeat("\xe6\x95\xb0", 341);
    char *broken = repeat("\xff", 1024), *broken_cut = repeat("\xef\xbf\xbd", 341);
    char *four = repeat("\xf0\x9f\x98\x80", 300), *four_cut = repeat("\xf0\x9f\x98\x80", 256);
    const struct {
        const char *name, *stored;
    } cases[] = {
        {"a.txt", "a.txt"},
        {"", "unnamed"},
        {"\xe6\x95\xb0\xe6\x8d\xae.txt", "\xe6\x95\xb0\xe6\x8d\xae.txt"},
        {"plots/\xf0\x9f\x98\x80/a b.png", "plots/\xf0\x9f\x98\x80/a b.png"},
        {"../../etc/passwd", "../../etc/passwd"},
        {"quote\" back\\slash", "quote\" back\\slash"},
        {"line\nbreak\x01\x7f\xe2\x80\xa8", "line\nbreak\x01\x7f\xe2\x80\xa8"},
        {"bad\xff.txt", "bad\xef\xbf\xbd.txt"},
        {"cut\xe6\x95", "cut\xef\xbf\xbd"},
        {"surrogate\xed\xa0\x80", "surrogate\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {longest, longest},
        {too_long, longest},
        {uneven, uneven_cut},
        {broken, broken_cut},
        {four, four_cut},
    };
    reopen(boundless);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct store_entry entry = must_add(cases[i].name, "hello");
        assert_string_equal(entry.name, cases[i].stored);
        assert_holds(entry.id, cases[i].stored, "hello");
        reopen(boundless);
        assert_holds(entry.id, cases[i].stored, "hello");
        store_entry_done(&entry);
    }
    char *all[] = {longest, too_long, uneven, uneven_cut, broken, broken_cut, four, four_cut};
    for (size_t i = 0; i < COUNT(all); i++)
        free(all[i]);
}

static void a_file_on_disk_is_private_and_named_by_its_id(void **state) {
    (void)state;
    char meta[64];
    struct stat st;
    reopen(boundless);
    struct store_entry entry = must_add("a.txt", "hello");
    snprintf(meta, sizeof meta, "%s.meta.json", entry.id);
    assert_int_equal(fstatat(dir, entry.id, &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0600);
    assert_int_equal(fstatat(dir, meta, &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0600);
    assert_int_equal(names_in_dir(), 2);
    assert_int_equal(entry.id[14], '4');
    assert_non_null(strchr("89ab", entry.id[19]));
    store_entry_done(&entry);
}

static void an_empty_file_is_a_file(void **state) {
    (void)state;
    reopen(boundless);
    struct store_entry entry = must_add("empty", "");
    reopen(boundless);
    assert_holds(entry.id, "empty", "");
    assert_int_equal(store_usage(store).files, 1);
    assert_int_equal(store_usage(store).bytes, STORE_FILE_COST);
    store_entry_done(&entry);
}

static void empty_files_keep_the_bound(void **state) {
    (void)state;
    struct err e;
    struct store_entry entry;
    struct store_upload *u;
    reopen((struct store_options){.total_max = 3 * STORE_FILE_COST});
    for (int i = 0; i < 2; i++) {
        entry = must_add("empty", "");
        store_entry_done(&entry);
    }
    assert_int_equal(store_begin(store, "t", &u, &e), 0);
    assert_int_equal(add("t", "one too many", "", &entry, &e), -1); /* what is under way counts */
    assert_string_equal(e.kind, "disk_full");
    assert_int_equal(names_in_dir(), 5);
    store_abort(u);
    entry = must_add("empty", "");
    store_entry_done(&entry);
    assert_int_equal(add("t", "one too many", "", &entry, &e), -1);
    assert_int_equal(names_in_dir(), 6);
}

static void an_aborted_upload_leaves_nothing(void **state) {
    (void)state;
    struct err e;
    struct store_upload *u;
    reopen(boundless);
    assert_int_equal(store_begin(store, "t", &u, &e), 0);
    assert_int_equal(store_append(u, "hello", 5, &e), 0);
    assert_int_equal(names_in_dir(), 1);
    assert_int_equal(store_usage(store).files, 0);
    store_abort(u);
    store_abort(NULL);
    assert_int_equal(names_in_dir(), 0);
}

static void a_file_may_be_as_large_as_the_bound_and_no_larger(void **state) {
    (void)state;
    struct err e;
    struct store_upload *u;
    struct store_entry entry;
    reopen((struct store_options){.file_max = 5});
    entry = must_add("fits", "12345");
    store_entry_done(&entry);
    assert_int_equal(store_begin(store, "t", &u, &e), 0);
    assert_int_equal(store_append(u, "12345", 5, &e), 0);
    assert_int_equal(store_append(u, "6", 1, &e), -1);
    assert_string_equal(e.kind, "file_too_large");
    assert_int_equal(store_append(u, "", 0, &e), -1); /* once failed, failed */
    e = (struct err){0};
    assert_int_equal(store_finish(u, "x", &entry, &e), -1);
    assert_string_equal(e.kind, "file_too_large");
    assert_int_equal(names_in_dir(), 2);
}

static void all_files_together_keep_the_bound(void **state) {
    (void)state;
    struct err e;
    struct store_upload *u;
    struct store_entry one, entry;
    reopen((struct store_options){.total_max = 2 * STORE_FILE_COST + 10});
    one = must_add("one", "12345");
    assert_int_equal(store_begin(store, "t", &u, &e), 0);
    assert_int_equal(store_append(u, "123", 3, &e), 0);
    assert_int_equal(add("t", "two", "123", &entry, &e), -1); /* what is under way counts */
    assert_string_equal(e.kind, "disk_full");
    store_abort(u);
    entry = must_add("two", "12345");
    store_entry_done(&entry);
    assert_int_equal(add("t", "three", "1", &entry, &e), -1);
    assert_string_equal(e.kind, "disk_full");
    assert_int_equal(store_delete(store, "t", one.id, &e), 0);
    store_entry_done(&one);
    entry = must_add("three", "1");
    store_entry_done(&entry);
    assert_int_equal(store_usage(store).files, 2);
    assert_int_equal(store_usage(store).bytes, 2 * STORE_FILE_COST + 6);
    reopen((struct store_options){.total_max = 3}); /* a lower bound removes nothing */
    assert_int_equal(store_usage(store).bytes, 2 * STORE_FILE_COST + 6);
    assert_int_equal(add("t", "four", "1", &entry, &e), -1);
    assert_string_equal(e.kind, "disk_full");
}

static void a_new_file_is_the_newest_even_if_the_clock_was_set_back(void **state) {
    (void)state;
    put_pair(ID_A, "from the future", real_now() + 1e6);
    reopen(boundless);
    struct store_entry entry = must_add("new", "1");
    assert_lists("t", "new by-hand ");
    assert_true(entry.uploaded < real_now() + 1);
    store_entry_done(&entry);
}

static void what_the_system_lets_nobody_write_is_too_large(void **state) {
    (void)state;
    struct err e;
    struct store_entry entry;
    struct rlimit before;
    reopen(boundless);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit low = {.rlim_cur = 1000, .rlim_max = before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    char *text = repeat("x", 1500);
    int r = add("t", "x", text, &entry, &e);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    free(text);
    assert_int_equal(r, -1);
    assert_string_equal(e.kind, "file_too_large");
    assert_int_equal(names_in_dir(), 0);
}

#define CANNOT_MOUNT 77

/* Over the test's directory, in namespaces of our own. */
static int mount_small_disk(void) {
    char uids[32], gids[32];
    struct err e;
    snprintf(uids, sizeof uids, "0 %u 1", getuid());
    snprintf(gids, sizeof gids, "0 %u 1", getgid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
        file_write_at(AT_FDCWD, "/proc/self/uid_map", uids, &e) < 0 ||
        file_write_at(AT_FDCWD, "/proc/self/setgroups", "deny", &e) < 0 ||
        file_write_at(AT_FDCWD, "/proc/self/gid_map", gids, &e) < 0)
        return -1;
    return mount("store", path, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,nr_inodes=64");
}

/* In a child with a mount namespace of its own: exits 0 when all is as it should be. */
static int fill_a_small_disk(void) {
    struct err e = {0};
    struct store_entry entry;
    if (mount_small_disk() < 0)
        return CANNOT_MOUNT;
    AUTO_FD small = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store_open(small, &boundless, loop, &store, &e) < 0)
        return 1;
    char *text = repeat("x", 100000);
    AUTO_FD fd = memfd_create("x", MFD_CLOEXEC);
    if (fd_write_all(fd, text, 100000, &e) < 0)
        return 2;
    if (add("t", "x", text, &entry, &e) == 0 || strcmp(e.kind, "disk_full") != 0)
        return 3;
    e = (struct err){0};
    if (copy_of("x", fd, 100000, &entry, &e) == 0 || strcmp(e.kind, "disk_full") != 0)
        return 4;
    if (names_in_dir() != 0 || copy_of("x", fd, 30000, NULL, &e) < 0)
        return 5;
    e = (struct err){0};
    for (int i = 0; i < 64; i++) { /* until the inodes are gone, some of them in mid-upload */
        struct store_upload *u;
        if (store_begin(store, "t", &u, &e) < 0 || store_finish(u, "x", NULL, &e) < 0)
            break;
    }
    if (strcmp(e.kind, "disk_full") != 0 || names_in_dir() != store_usage(store).files * 2)
        return 6;
    store_close(store);
    free(text);
    return 0;
}

static void a_full_disk_is_said_and_leaves_nothing_behind(void **state) {
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(fill_a_small_disk());
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CANNOT_MOUNT)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(any_name_comes_back_also_after_a_restart),
        TEST(a_file_on_disk_is_private_and_named_by_its_id),
        TEST(an_empty_file_is_a_file),
        TEST(empty_files_keep_the_bound),
        TEST(an_aborted_upload_leaves_nothing),
        TEST(a_file_may_be_as_large_as_the_bound_and_no_larger),
        TEST(all_files_together_keep_the_bound),
        TEST(a_new_file_is_the_newest_even_if_the_clock_was_set_back),
        TEST(what_the_system_lets_nobody_write_is_too_large),
        TEST(a_full_disk_is_said_and_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
