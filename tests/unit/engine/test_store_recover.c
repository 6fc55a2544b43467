/* engine/store/recover: what a store makes of the directory that it finds. */

#include "store_fixture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void what_is_half_done_is_removed_at_the_start(void **state) {
    (void)state;
    static const struct {
        const char *name, *text;
    } cases[] = {
        {"." ID_A ".part", "half"},
        {"." ID_A ".meta.part", "{\"file_id\":"},
        {ID_A, "data without meta"},
        {ID_A ".meta.json", "{\"file_id\":\"" ID_A "\",\"filename\":\"no data\",\"size_bytes\":4,"
                            "\"upload_time\":1.5,\"tenant\":\"t\"}"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        put_file(cases[i].name, cases[i].text);
        reopen(boundless);
        assert_int_equal(names_in_dir(), 0);
        assert_int_equal(store_usage(store).files, 0);
    }
}

static void a_crash_between_the_two_renames_is_undone(void **state) {
    (void)state;
    put_meta(ID_A, "x", 4, real_now());
    put_file("." ID_A ".part", "1234");
    reopen(boundless);
    assert_int_equal(names_in_dir(), 0);
}

static void a_file_whose_meta_is_not_whole_is_removed(void **state) {
    (void)state;
    char *big = repeat(" ", 20000);
    const char *const metas[] = {
        "",
        "{",
        "[]",
        "{}",
        "\xff",
        "{\"file_id\":\"" ID_A "\",\"filename\":\"x\",\"size_bytes\":4,\"upload_time\":1.5",
        "{\"file_id\":\"" ID_B "\",\"filename\":\"x\",\"size_bytes\":4,\"upload_time\":1.5}",
        "{\"file_id\":\"" ID_A "\",\"filename\":\"x\",\"size_bytes\":5,\"upload_time\":1.5}",
        "{\"file_id\":\"" ID_A "\",\"filename\":\"x\",\"size_bytes\":-4,\"upload_time\":1.5}",
        "{\"file_id\":\"" ID_A "\",\"filename\":\"x\",\"size_bytes\":\"4\",\"upload_time\":1.5}",
        "{\"file_id\":\"" ID_A "\",\"filename\":7,\"size_bytes\":4,\"upload_time\":1.5}",
        "{\"file_id\":\"" ID_A "\",\"filename\":\"x\",\"size_bytes\":4}",
        "{\"file_id\":\"" ID_A "\",\"filename\":\"x\",\"size_bytes\":4,\"upload_time\":1.5,"
        "\"tenant\":[]}",
        big,
    };
    for (size_t i = 0; i < COUNT(metas); i++) {
        put_file(ID_A, "1234");
        put_file(ID_A ".meta.json", metas[i]);
        reopen(boundless);
        assert_int_equal(names_in_dir(), 0);
        assert_no_file("t", ID_A);
    }
    free(big);
}

static void a_meta_without_a_tenant_is_the_empty_tenants(void **state) {
    (void)state;
    struct err e;
    put_file(ID_A, "1234");
    put_file(ID_A ".meta.json", "{\"file_id\": \"" ID_A "\", \"filename\": \"x\", "
                                "\"size_bytes\": 4, \"upload_time\": 1700000000}");
    reopen(boundless);
    assert_int_equal(store_find(store, "", ID_A, NULL, NULL, &e), 0);
    assert_no_file("t", ID_A);
}

static void what_is_not_ours_stays(void **state) {
    (void)state;
    static const char *const foreign[] = {
        "README",    ".hidden",    "notes.meta.json", "11111111-2222-4333-8444-AAAAAAAAAAAA",
        ID_A ".txt", ID_A ".part", "." ID_A,          "." ID_A ".meta.json",
        "x" ID_A,
    };
    for (size_t i = 0; i < COUNT(foreign); i++)
        put_file(foreign[i], "1234");
    assert_int_equal(mkdirat(dir, ID_B, 0700), 0);
    assert_int_equal(mkdirat(dir, ID_C ".meta.json", 0700), 0);
    reopen((struct store_options){.ttl_s = 1});
    assert_int_equal(names_in_dir(), COUNT(foreign) + 2);
    for (size_t i = 0; i < COUNT(foreign); i++)
        assert_true(exists(foreign[i]));
    assert_int_equal(store_usage(store).files, 0);
}

static void symlinks_are_not_followed(void **state) {
    (void)state;
    put_file("target", "1234");
    put_meta("target", "x", 4, real_now()); /* target.meta.json */
    /* in place of the data */
    put_meta(ID_A, "x", 4, real_now());
    assert_int_equal(symlinkat("target", dir, ID_A), 0);
    /* in place of the meta */
    put_file(ID_B, "1234");
    assert_int_equal(symlinkat("target.meta.json", dir, ID_B ".meta.json"), 0);
    reopen(boundless);
    assert_no_file("t", ID_A);
    assert_no_file("t", ID_B);
    assert_int_equal(store_usage(store).files, 0);
    assert_true(exists("target") && exists("target.meta.json"));
    assert_true(exists(ID_A) && exists(ID_B ".meta.json"));
    assert_false(exists(ID_A ".meta.json") || exists(ID_B));
}

static void old_files_are_removed_at_the_start(void **state) {
    (void)state;
    put_pair(ID_A, "old", real_now() - 3601);
    put_pair(ID_B, "young", real_now() - 3000);
    put_pair(ID_C, "from the future", real_now() + 1e6);
    reopen((struct store_options){.ttl_s = 3600});
    assert_no_file("t", ID_A);
    assert_holds(ID_B, "by-hand", "young");
    assert_holds(ID_C, "by-hand", "from the future");
    assert_int_equal(names_in_dir(), 4);
    reopen(boundless); /* without a bound age does not matter */
    assert_int_equal(store_usage(store).files, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_is_half_done_is_removed_at_the_start),
        TEST(a_crash_between_the_two_renames_is_undone),
        TEST(a_file_whose_meta_is_not_whole_is_removed),
        TEST(a_meta_without_a_tenant_is_the_empty_tenants),
        TEST(what_is_not_ours_stays),
        TEST(symlinks_are_not_followed),
        TEST(old_files_are_removed_at_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
