/* wire/entry: what init tells of files, whose names hostile code chose. */

#include "wire/entry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void records_come_back_as_they_were(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    const struct entry in[] = {
        {.type = ENTRY_FILE, .mode = 0644, .size = 1ull << 60, .path = "a/\xff\n", .target = ""},
        {.type = ENTRY_SYMLINK, .mtime_ns = 7, .ino = 9, .path = "l", .target = "/etc/passwd"},
        {.type = ENTRY_DIRECTORY, .deep = true, .mode = 01777, .path = "", .target = ""},
    };
    for (int i = 0; i < 3; i++)
        entry_put(&b, &in[i]);
    const uint8_t *at = (const uint8_t *)b.data, *end = at + b.len;
    for (int i = 0; i < 3; i++) {
        struct entry out;
        assert_true(entry_get(&at, end, &out));
        assert_int_equal(out.type, in[i].type);
        assert_int_equal(out.deep, in[i].deep);
        assert_int_equal(out.mode, in[i].mode);
        assert_true(out.size == in[i].size && out.mtime_ns == in[i].mtime_ns);
        assert_true(out.ino == in[i].ino);
        assert_string_equal(out.path, in[i].path);
        assert_string_equal(out.target, in[i].target);
    }
    assert_true(at == end);
}

static void a_record_that_is_cut_anywhere_is_none(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    entry_put(&b, &(struct entry){.path = "path", .target = "target"});
    for (size_t len = 0; len < b.len; len++) {
        uint8_t *copy = malloc(len + 1); /* so that a sanitizer sees a byte too many read */
        memcpy(copy, b.data, len);
        const uint8_t *at = copy;
        struct entry out;
        assert_false(entry_get(&at, copy + len, &out));
        free(copy);
    }
}

static void wrong_records_are_none(void **state) {
    (void)state;
    static const struct {
        size_t at;
        uint8_t byte;
    } wrong[] = {{0, ENTRY_TYPES_}, /* a type that is none */
                 {36, 200},         /* a path longer than the record */
                 {36, 0},           /* without its NUL */
                 {41, 0}};          /* with one inside */
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        AUTO_BUF b = BUF_INIT;
        entry_put(&b, &(struct entry){.path = "path", .target = ""});
        b.data[wrong[i].at] = (char)wrong[i].byte;
        const uint8_t *at = (const uint8_t *)b.data;
        struct entry out;
        assert_false(entry_get(&at, at + b.len, &out));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back_as_they_were),
        cmocka_unit_test(a_record_that_is_cut_anywhere_is_none),
        cmocka_unit_test(wrong_records_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
