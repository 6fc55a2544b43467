/* wire/mounts: what an operator may write, and what it means. */

#include "wire/mounts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void good_words_are_taken_apart(void **state) {
    (void)state;
    static const struct {
        const char *text, *host, *path;
        bool writable;
    } cases[] = {
        {"/srv/data:data", "/srv/data", "data", false},
        {"/srv/data:data:ro", "/srv/data", "data", false},
        {"/srv/out:a/b/c:rw", "/srv/out", "a/b/c", true},
        {"/:root", "/", "root", false},
        {"/a:..b", "/a", "..b", false},
        {"/a:b.", "/a", "b.", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mount_words w;
        struct err e;
        assert_int_equal(mount_words_parse(cases[i].text, &w, &e), 0);
        assert_string_equal(w.host, cases[i].host);
        assert_string_equal(w.path, cases[i].path);
        assert_int_equal(w.writable, cases[i].writable);
    }
}

static void bad_words_are_refused_with_the_words(void **state) {
    (void)state;
    static const char *const cases[] = {
        "",        "/srv",       "srv:data", ":data",      "/srv:",       "/srv:/data",
        "/srv:..", "/srv:a/..",  "/srv:./a", "/srv:a//b",  "/srv:a/",     "/srv:.",
        "/srv:a:", "/srv:a:rwx", "/srv:a:b", "/srv:a:rw:", "/srv:a:rw,x",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mount_words w;
        struct err e;
        assert_int_equal(mount_words_parse(cases[i], &w, &e), -1);
        assert_string_equal(e.kind, "bad_value");
        assert_non_null(strstr(e.text, cases[i]));
    }
}

static void lengths_are_bounded(void **state) {
    (void)state;
    char text[600];
    struct mount_words w;
    struct err e;
    int n = snprintf(text, sizeof text, "/%0*d:p", MOUNT_HOST_MAX - 1, 0);
    assert_int_equal(mount_words_parse(text, &w, &e), 0);
    memmove(text + 2, text + 1, (size_t)n);
    assert_int_equal(mount_words_parse(text, &w, &e), -1);
    snprintf(text, sizeof text, "/h:%0*d", MOUNT_PATH_MAX, 0);
    assert_int_equal(mount_words_parse(text, &w, &e), 0);
    snprintf(text, sizeof text, "/h:%0*d", MOUNT_PATH_MAX + 1, 0);
    assert_int_equal(mount_words_parse(text, &w, &e), -1);
}

static void one_in_another_is_a_clash(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        bool clash;
    } cases[] = {
        {"a", "a", true},   {"a", "a/b", true},    {"a/b", "a", true},
        {"a", "ab", false}, {"a/b", "a/c", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mount_words a = {.writable = false}, b = {.writable = false};
        snprintf(a.path, sizeof a.path, "%s", cases[i].a);
        snprintf(b.path, sizeof b.path, "%s", cases[i].b);
        assert_int_equal(mount_words_clash(&a, &b), cases[i].clash);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_words_are_taken_apart),
        cmocka_unit_test(bad_words_are_refused_with_the_words),
        cmocka_unit_test(lengths_are_bounded),
        cmocka_unit_test(one_in_another_is_a_clash),
    };
    return cmocka_run_group_tests_name("wire/mounts", tests, NULL, NULL);
}
