/* base/buf: a growing byte string that always ends in NUL. */

#include "base/buf.h"
#include "base/fd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void is_an_empty_string_before_use(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    assert_string_equal(b.data, "");
    assert_int_equal(b.len, 0);
    buf_clear(&b);
    assert_string_equal(b.data, "");
}

static void appends_and_stays_terminated(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    buf_adds(&b, "one");
    buf_addc(&b, ' ');
    buf_addf(&b, "%d+%s", 1, "1");
    buf_add(&b, NULL, 0);
    assert_string_equal(b.data, "one 1+1");
    assert_int_equal(b.len, 7);
}

static void keeps_bytes_with_nul_inside(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    buf_add(&b, "a\0b", 3);
    assert_int_equal(b.len, 3);
    assert_memory_equal(b.data, "a\0b", 4);
}

static void grows_over_every_size(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    for (size_t i = 0; i < 5000; i++) {
        buf_addc(&b, (char)('a' + i % 26));
        assert_int_equal(b.data[b.len], '\0');
        assert_true(b.len < b.cap);
    }
    for (size_t i = 0; i < 5000; i++)
        assert_int_equal(b.data[i], 'a' + (int)(i % 26));
}

static void formats_longer_than_its_room(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    buf_addf(&b, "%0300d", 7);
    assert_int_equal(b.len, 300);
    assert_int_equal(b.data[299], '7');
    assert_int_equal(strlen(b.data), 300);
}

static void reserves_room_to_write_into(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    memset(buf_reserve(&b, 1000), 'x', 1000);
    buf_commit(&b, 10);
    assert_string_equal(b.data, "xxxxxxxxxx");
}

static void gives_its_string_away_and_is_empty_again(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    AUTO_FREE char *nothing = buf_take(&b);
    assert_string_equal(nothing, "");
    buf_adds(&b, "kept");
    AUTO_FREE char *taken = buf_take(&b);
    assert_string_equal(taken, "kept");
    assert_string_equal(b.data, "");
    buf_adds(&b, "again");
    assert_string_equal(b.data, "again");
}

static void may_be_done_twice(void **state) {
    (void)state;
    struct buf b = BUF_INIT;
    buf_adds(&b, "x");
    buf_done(&b);
    buf_done(&b);
    assert_string_equal(b.data, "");
}

static void copies_as_much_of_a_string_as_there_is(void **state) {
    (void)state;
    AUTO_FREE char *part = xstrndup("clochette", 6), *all = xstrndup("cloche", 60);
    AUTO_FREE char *none = xstrndup("cloche", 0);
    assert_string_equal(part, "cloche");
    assert_string_equal(all, "cloche");
    assert_string_equal(none, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_an_empty_string_before_use),
        cmocka_unit_test(appends_and_stays_terminated),
        cmocka_unit_test(keeps_bytes_with_nul_inside),
        cmocka_unit_test(grows_over_every_size),
        cmocka_unit_test(formats_longer_than_its_room),
        cmocka_unit_test(reserves_room_to_write_into),
        cmocka_unit_test(gives_its_string_away_and_is_empty_again),
        cmocka_unit_test(may_be_done_twice),
        cmocka_unit_test(copies_as_much_of_a_string_as_there_is),
    };
    return cmocka_run_group_tests_name("base/buf", tests, NULL, NULL);
}
