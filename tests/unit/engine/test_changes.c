/* engine/changes: the list of files in a workspace, whose names hostile code chose. */

#include "base/buf.h"
#include "engine/core/changes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void put(struct buf *b, uint64_t size, const char *path, size_t len) {
    uint32_t n = (uint32_t)len;
    buf_add(b, &size, sizeof size);
    buf_add(b, &n, sizeof n);
    buf_add(b, path, len);
}

static int parse(const struct buf *b, size_t len, unsigned most, struct changes *ret) {
    struct err e;
    return changes_parse((const uint8_t *)b->data, len, most, ret, &e);
}

static void files_come_back_as_they_were_listed(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    struct changes c;
    put(&b, 5, "a.txt", 5);
    put(&b, UINT64_MAX, "dir/\xff name\n", 11);
    put(&b, 0, "...", 3);
    assert_int_equal(parse(&b, b.len, 10, &c), 0);
    assert_int_equal(c.n, 3);
    assert_string_equal(c.items[0].path, "a.txt");
    assert_true(c.items[0].size == 5);
    assert_string_equal(c.items[1].path, "dir/\xff name\n");
    assert_true(c.items[1].size == UINT64_MAX);
    assert_string_equal(c.items[2].path, "...");
    changes_done(&c);
    assert_int_equal(c.n, 0);
}

static void nothing_is_a_list_too(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    struct changes c;
    assert_int_equal(parse(&b, 0, 10, &c), 0);
    assert_int_equal(c.n, 0);
    changes_done(&c);
}

static void no_more_are_taken_than_asked_for(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    struct changes c;
    for (int i = 0; i < 100; i++)
        put(&b, 1, "x", 1);
    assert_int_equal(parse(&b, b.len, 40, &c), 0);
    assert_int_equal(c.n, 40);
    changes_done(&c);
}

static const struct {
    const char *path;
    size_t len;
} bad_paths[] = {
    {"", 0},     {".", 1},    {"..", 2}, {"/etc/passwd", 11}, {"a/../b", 6},
    {"a/..", 4}, {"a//b", 4}, {"a/", 2}, {"./a", 3},          {"a/./b", 5},
    {"a\0b", 3}, {"../a", 4}, {"/", 1},  {"a/b/../", 7},
};

static void a_path_that_leads_elsewhere_spoils_the_list(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_paths / sizeof *bad_paths; i++) {
        AUTO_BUF b = BUF_INIT;
        struct changes c = {0};
        put(&b, 1, "good", 4);
        put(&b, 1, bad_paths[i].path, bad_paths[i].len);
        if (parse(&b, b.len, 10, &c) == 0)
            fail_msg("path %zu \"%s\" was taken", i, bad_paths[i].path);
        assert_null(c.items);
    }
}

static void a_list_cut_anywhere_is_refused(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    struct changes c;
    put(&b, 1, "some/path", 9);
    for (size_t len = 1; len < b.len; len++)
        assert_int_equal(parse(&b, len, 10, &c), -1);
    assert_int_equal(parse(&b, b.len, 10, &c), 0);
    changes_done(&c);
}

static void lengths_that_lie_are_refused(void **state) {
    (void)state;
    static const uint32_t lengths[] = {5, 4096, 0x7fffffff, 0xfffffff0, UINT32_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        AUTO_BUF b = BUF_INIT;
        struct changes c;
        put(&b, 1, "four", 4);
        memcpy(b.data + 8, &lengths[i], sizeof lengths[i]);
        assert_int_equal(parse(&b, b.len, 10, &c), -1);
    }
}

static void the_longest_path_is_taken_and_a_longer_one_is_not(void **state) {
    (void)state;
    char *path = malloc(4096);
    memset(path, 'p', 4096);
    for (size_t len = 4095; len <= 4096; len++) {
        AUTO_BUF b = BUF_INIT;
        struct changes c;
        put(&b, 1, path, len);
        assert_int_equal(parse(&b, b.len, 10, &c), len == 4095 ? 0 : -1);
        if (len == 4095)
            changes_done(&c);
    }
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_come_back_as_they_were_listed),
        cmocka_unit_test(nothing_is_a_list_too),
        cmocka_unit_test(no_more_are_taken_than_asked_for),
        cmocka_unit_test(a_path_that_leads_elsewhere_spoils_the_list),
        cmocka_unit_test(a_list_cut_anywhere_is_refused),
        cmocka_unit_test(lengths_that_lie_are_refused),
        cmocka_unit_test(the_longest_path_is_taken_and_a_longer_one_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
