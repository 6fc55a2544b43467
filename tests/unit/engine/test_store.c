/* engine/store: files are kept for their tenant and found by exact ids only, and nothing but a
 * whole file can ever be fetched. */

#include "store_fixture.h"

#include "base/fd.h"

#include <errno.h>
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

static void a_deleted_file_is_gone(void **state) {
    (void)state;
    struct err e;
    reopen(boundless);
    struct store_entry one = must_add("one", "1"), two = must_add("two", "22");
    AUTO_FD fd = -1;
    assert_int_equal(store_find(store, "t", one.id, NULL, &fd, &e), 0);
    assert_int_equal(store_delete(store, "t", one.id, &e), 0);
    assert_no_file("t", one.id);
    assert_int_equal(store_delete(store, "t", one.id, &e), -1);
    assert_string_equal(e.kind, "no_file");
    assert_int_equal(names_in_dir(), 2);
    char got[8]; /* whoever was reading reads on */
    assert_int_equal(fd_read_all(fd, got, sizeof got, NULL, &e), 0);
    assert_string_equal(got, "1");
    reopen(boundless);
    assert_no_file("t", one.id);
    assert_holds(two.id, "two", "22");
    store_entry_done(&one);
    store_entry_done(&two);
}

static void a_file_belongs_to_its_tenant(void **state) {
    (void)state;
    struct err e;
    struct store_entry mine, yours;
    reopen(boundless);
    assert_int_equal(add("me", "mine", "1", &mine, &e), 0);
    assert_int_equal(add("you", "yours", "2", &yours, &e), 0);
    for (int round = 0; round < 2; round++) {
        assert_no_file("you", mine.id);
        assert_no_file("", mine.id);
        assert_int_equal(store_delete(store, "you", mine.id, &e), -1);
        assert_string_equal(e.kind, "no_file");
        assert_int_equal(store_find(store, "me", mine.id, NULL, NULL, &e), 0);
        assert_lists("me", "mine ");
        assert_lists("you", "yours ");
        assert_lists("nobody", "");
        assert_int_equal(store_usage(store).files, 2);
        reopen(boundless);
    }
    char *tenant = repeat("x", 256);
    struct store_upload *u;
    assert_int_equal(store_begin(store, tenant, &u, &e), -1);
    free(tenant);
    store_entry_done(&mine);
    store_entry_done(&yours);
}

static void the_list_is_newest_first_also_after_a_restart(void **state) {
    (void)state;
    struct err e;
    reopen(boundless);
    char want[256] = "", name[8], before[256];
    struct store_entry middle = {0};
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "%d", i);
        struct store_entry entry = must_add(name, name);
        if (i == 15) {
            middle = entry;
            continue;
        }
        snprintf(before, sizeof before, "%s", want);
        snprintf(want, sizeof want, "%s %.240s", name, before);
        store_entry_done(&entry);
    }
    assert_int_equal(store_delete(store, "t", middle.id, &e), 0);
    store_entry_done(&middle);
    assert_lists("t", want);
    reopen(boundless);
    assert_lists("t", want);
}

static void only_exact_ids_find_anything(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        ".",
        "..",
        "x",
        "../x",
        "/etc/passwd",
        "secret",
        ID_A ".meta.json",
        "." ID_A ".part",
        ID_A "a",
        ID_A "/",
        ID_A "\n",
        " " ID_A,
        "./" ID_A,
        "11111111-2222-4333-8444-AAAAAAAAAAAA",
        "11111111222243338444aaaaaaaaaaaa",
        "{" ID_A "}",
        "11111111-2222-4333-8444-aaaaaaaaaaa",
        "11111111-2222-4333-8444-aaaaaaaaaaag",
        "1111111-12222-4333-8444-aaaaaaaaaaaa",
        ID_B,
    };
    struct err e;
    put_pair(ID_A, "hello", real_now());
    put_file("secret", "x");
    reopen(boundless);
    assert_holds(ID_A, "by-hand", "hello");
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_no_file("t", bad[i]);
        assert_int_equal(store_delete(store, "t", bad[i], &e), -1);
        assert_string_equal(e.kind, "no_file");
    }
    assert_int_equal(names_in_dir(), 3);
}

static void a_file_that_was_exchanged_behind_our_back_is_gone(void **state) {
    (void)state;
    static const char *const ids[] = {ID_A, ID_B, ID_C};
    put_file("target", "1234");
    for (size_t i = 0; i < COUNT(ids); i++)
        put_pair(ids[i], "1234", real_now());
    reopen(boundless);
    for (size_t i = 0; i < COUNT(ids); i++)
        assert_int_equal(unlinkat(dir, ids[i], 0), 0);
    assert_int_equal(symlinkat("target", dir, ID_A), 0);
    put_file(ID_B, "longer than it was");
    assert_int_equal(mkfifoat(dir, ID_C, 0600), 0);
    for (size_t i = 0; i < COUNT(ids); i++)
        assert_no_file("t", ids[i]);
    assert_int_equal(store_usage(store).files, 0);
}

static void a_second_store_in_the_directory_is_refused(void **state) {
    (void)state;
    struct err e;
    struct store *second;
    reopen(boundless);
    assert_int_equal(store_open(dir, &boundless, loop, &second, &e), -1);
    assert_int_equal(e.code, EBUSY);
}

static void a_directory_that_cannot_be_opened_is_an_error(void **state) {
    (void)state;
    struct err e;
    AUTO_FD fd = memfd_create("x", MFD_CLOEXEC);
    assert_int_equal(store_open(fd, &boundless, loop, &store, &e), -1);
    assert_null(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_deleted_file_is_gone),
        TEST(a_file_belongs_to_its_tenant),
        TEST(the_list_is_newest_first_also_after_a_restart),
        TEST(only_exact_ids_find_anything),
        TEST(a_file_that_was_exchanged_behind_our_back_is_gone),
        TEST(a_second_store_in_the_directory_is_refused),
        TEST(a_directory_that_cannot_be_opened_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
