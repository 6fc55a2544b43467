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

static void what_is_allowed_is_a_plain_path(void **state) {
    (void)state;
    static const struct {
        const char *text, *host; /* NULL: refused */
        bool writable;
    } cases[] = {
        {"/srv", "/srv", false},  {"/srv/data:rw", "/srv/data", true},
        {"/a:ro", "/a", false},   {"/a:rwx", NULL, false},
        {"/", NULL, false},       {"", NULL, false},
        {"srv", NULL, false},     {"/srv/", NULL, false},
        {"/srv//a", NULL, false}, {"/srv/../a", NULL, false},
        {"/.", NULL, false},      {"/a:rw:ro", NULL, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct allow_words w;
        struct err e;
        assert_int_equal(allow_words_parse(cases[i].text, &w, &e), cases[i].host ? 0 : -1);
        if (!cases[i].host)
            continue;
        assert_string_equal(w.host, cases[i].host);
        assert_int_equal(w.writable, cases[i].writable);
    }
}

static void only_what_is_below_is_allowed(void **state) {
    (void)state;
    static const struct {
        const char *path, *below;
    } cases[] = {
        {"/srv/data", ""},        {"/srv/data/a", "a"},    {"/srv/data/a/b", "a/b"},
        {"/srv/data/..b", "..b"}, {"/srv/database", NULL}, {"/srv", NULL},
        {"/srv/data/", NULL},     {"/srv/data//a", NULL},  {"/srv/data/../x", NULL},
        {"/srv/./data", NULL},    {"srv/data", NULL},      {"", NULL},
        {"/srv/data/a/..", NULL}, {"/srv//data/a", NULL},
    };
    struct allow_words w;
    struct err e;
    assert_int_equal(allow_words_parse("/srv/data", &w, &e), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *below = allow_words_below(&w, cases[i].path);
        assert_int_equal(below != NULL, cases[i].below != NULL);
        if (below)
            assert_string_equal(below, cases[i].below);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_words_are_taken_apart),
        cmocka_unit_test(bad_words_are_refused_with_the_words),
        cmocka_unit_test(lengths_are_bounded),
        cmocka_unit_test(one_in_another_is_a_clash),
        cmocka_unit_test(what_is_allowed_is_a_plain_path),
        cmocka_unit_test(only_what_is_below_is_allowed),
    };
    return cmocka_run_group_tests_name("wire/mounts", tests, NULL, NULL);
}
