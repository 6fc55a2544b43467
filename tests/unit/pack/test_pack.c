/* pack: tar.gz out and in, and archives that lie. */

#include "tar_bytes.h"

#include "base/buf.h"
#include "base/fd.h"
#include "pack/packer.h"
#include "pack/unpacker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void keep(void *arg, const void *data, size_t len) {
    buf_add(arg, data, len);
}

static struct unpacker *open_bytes(const struct buf *b, int *fd) {
    struct unpacker *u;
    struct err e;
    assert_int_equal(memfd_of("archive", b->data, b->len, fd, &e), 0);
    return unpacker_new(*fd, &u, &e) == 0 ? u : NULL;
}

static void what_is_packed_comes_out_as_it_was(void **state) {
    (void)state;
    char deep[400];
    memset(deep, 'd', sizeof deep);
    deep[200] = '/', deep[399] = '\0';
    const struct pack_entry in[] = {
        {.type = PACK_DIRECTORY, .path = "dir", .mode = 0755, .mtime_ns = 1500000000000000000ull},
        {.type = PACK_FILE, .path = "dir/f", .mode = 0640, .size = 5, .mtime_ns = 7000000000ull},
        {.type = PACK_FILE, .path = "gr\xc3\xbc\xc3\x9f\x65 \xe6\x96\x87.txt", .mode = 0600},
        {.type = PACK_FILE, .path = "not\xff utf8", .mode = 0777, .size = 5},
        {.type = PACK_FILE, .path = deep, .mode = 0644},
        {.type = PACK_SYMLINK, .path = "link", .target = "../\xc3\xbc", .mode = 0777},
    };
    const size_t n = sizeof in / sizeof *in;
    AUTO_BUF b = BUF_INIT;
    struct packer *p;
    struct err e;
    assert_int_equal(packer_new(keep, &b, &p, &e), 0);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(packer_entry(p, &in[i], &e), 0);
        if (in[i].size)
            assert_int_equal(packer_data(p, "hello, and more than it has", in[i].size, &e), 0);
    }
    assert_int_equal(packer_end(p, &e), 0);
    packer_free(p);
    assert_memory_equal(b.data, "\x1f\x8b", 2);

    AUTO_FD fd = -1;
    struct unpacker *u = open_bytes(&b, &fd);
    assert_non_null(u);
    for (size_t i = 0; i < n; i++) {
        struct pack_entry out;
        const void *data;
        size_t len;
        uint64_t at;
        assert_int_equal(unpacker_next(u, &out, &e), 1);
        assert_int_equal(out.type, in[i].type);
        assert_string_equal(out.path, in[i].path);
        assert_int_equal(out.mode, in[i].mode);
        assert_true(out.size == in[i].size && out.mtime_ns == in[i].mtime_ns);
        if (in[i].type == PACK_SYMLINK)
            assert_string_equal(out.target, in[i].target);
        if (in[i].size) {
            assert_int_equal(unpacker_data(u, &data, &len, &at, &e), 1);
            assert_int_equal(len, 5);
            assert_memory_equal(data, "hello", 5);
        }
        assert_int_equal(unpacker_data(u, &data, &len, &at, &e), 0);
    }
    struct pack_entry out;
    assert_int_equal(unpacker_next(u, &out, &e), 0);
    unpacker_free(u);
}

static void one_that_is_given_up_writes_no_end(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    struct packer *p;
    struct err e;
    assert_int_equal(packer_new(keep, &b, &p, &e), 0);
    assert_int_equal(
        packer_entry(p, &(struct pack_entry){.path = "f", .mode = 0644, .size = 1ull << 50}, &e),
        0);
    size_t before = b.len;
    packer_free(p);
    assert_int_equal(b.len, before);
}

static void entries_that_could_do_harm_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *name;
        char type;
        const char *link, *word;
    } cases[] = {
        {"/etc/passwd", '0', "", "absolute"}, {"../x", '0', "", ".."},
        {"a/../../x", '0', "", ".."},         {"..", '5', "", ".."},
        {"hard", '1', "/etc/passwd", "hard"}, {"hard", '1', "a", "hard"},
        {"device", '3', "", "neither"},       {"block", '4', "", "neither"},
        {"fifo", '6', "", "neither"},         {"empty", '2', "", "nothing"},
        {"/", '5', "", "absolute"},           {".", '0', "", "no name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF b = BUF_INIT;
        AUTO_FD fd = -1;
        struct pack_entry out;
        struct err e = {0};
        tar_add(&b, cases[i].name, cases[i].type, cases[i].link, "", 0);
        tar_end(&b);
        struct unpacker *u = open_bytes(&b, &fd);
        assert_non_null(u);
        assert_int_equal(unpacker_next(u, &out, &e), -1);
        assert_string_equal(e.kind, "bad_archive");
        if (!strstr(e.text, cases[i].word))
            fail_msg("%s: %s", cases[i].name, e.text);
        unpacker_free(u);
    }
}

static void good_entries_of_the_same_make_are_taken(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    AUTO_FD fd = -1;
    struct pack_entry out;
    struct err e = {0};
    tar_add(&b, "./", '5', "", "", 0);
    tar_add(&b, "./a//b/./c", '0', "", "", 0);
    tar_add(&b, "...", '2', "/etc/passwd", "", 0);
    tar_end(&b);
    struct unpacker *u = open_bytes(&b, &fd);
    static const char *const paths[] = {"", "a/b/c", "..."};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(unpacker_next(u, &out, &e), 1);
        assert_string_equal(out.path, paths[i]);
    }
    assert_string_equal(out.target, "/etc/passwd");
    assert_int_equal(unpacker_next(u, &out, &e), 0);
    unpacker_free(u);
}

static void what_is_no_archive_is_said_to_be_none(void **state) {
    (void)state;
    static const char *const texts[] = {"hello", "\x1f\x8b\x08", "PK\x03\x04", "Rar!\x1a\x07\x01"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        AUTO_BUF b = BUF_INIT;
        AUTO_FD fd = -1;
        struct pack_entry out;
        struct err e = {0};
        for (int k = 0; k < 300; k++)
            buf_adds(&b, texts[i]);
        struct unpacker *u = open_bytes(&b, &fd);
        if (u)
            assert_int_equal(unpacker_next(u, &out, &e), -1);
        unpacker_free(u);
    }
}

static void nothing_at_all_is_an_empty_archive(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    AUTO_FD fd = -1;
    struct pack_entry out;
    struct err e = {0};
    struct unpacker *u = open_bytes(&b, &fd);
    if (u)
        assert_true(unpacker_next(u, &out, &e) <= 0);
    unpacker_free(u);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_packed_comes_out_as_it_was),
        cmocka_unit_test(one_that_is_given_up_writes_no_end),
        cmocka_unit_test(entries_that_could_do_harm_are_refused),
        cmocka_unit_test(good_entries_of_the_same_make_are_taken),
        cmocka_unit_test(what_is_no_archive_is_said_to_be_none),
        cmocka_unit_test(nothing_at_all_is_an_empty_archive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
