/* base/text: what of a text from outside is shown, and which times can be written. */

#include "base/text.h"

#include "base/buf.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void what_is_not_plain_is_escaped(void **state) {
    (void)state;
    static const struct {
        const char *behaviour, *text, *want;
    } cases[] = {
        {"text of many scripts", "a \xc3\xa4 \xd7\x90 \xe2\x82\xac \xf0\x9f\x90\x8d", NULL},
        {"controls", "a\033[2J\tb\x7f", "a\\x1b[2J\\x09b\\x7f"},
        {"controls of eight bits",
         "\xc2\x9b"
         "1m\xc2\x85\xc2\xa0",
         "\\u009b1m\\u0085\xc2\xa0"},
        /* NOLINTNEXTLINE(misc-misleading-bidirectional) */
        {"the direction of writing", "a\xe2\x80\xaegpj.exe\xe2\x81\xa6\xe2\x80\x8f\xd8\x9c",
         "a\\u202egpj.exe\\u2066\\u200f\\u061c"},
        {"no width",
         "a\xe2\x80\x8b"
         "b\xe2\x81\xa0\xef\xbb\xbf\xc2\xad",
         "a\\u200bb\\u2060\\ufeff\\u00ad"},
        {"tags", "\xf3\xa0\x80\x81", "\\U000e0001"},
        {"no characters", "\xff\x9b\xe2\x82", "\\xff\\x9b\\xe2\\x82"},
        {"too long a form", "\xc0\x9b\xe0\x80\x9b\xed\xa0\x80",
         "\\xc0\\x9b\\xe0\\x80\\x9b\\xed\\xa0\\x80"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF plain = BUF_INIT;
        text_add_plain(&plain, cases[i].text, strlen(cases[i].text));
        if (strcmp(plain.data, cases[i].want ? cases[i].want : cases[i].text) != 0)
            fail_msg("%s: \"%s\"", cases[i].behaviour, plain.data);
    }
}

static void characters_are_counted(void **state) {
    (void)state;
    const char *text = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x8d";
    assert_int_equal(text_chars(text, strlen(text)), 4);
    assert_int_equal(text_chars(NULL, 0), 0);
}

static void only_years_of_four_digits_are_dates(void **state) {
    (void)state;
    static const struct {
        double seconds;
        bool good;
    } cases[] = {
        {0, true},
        {1.5e9, true},
        {-1, true},
        {253402300799.0, true},
        {253402300800.0, false},
        {9223372036854775807.0, false},
        {-9.3e18, false},
        {1e308, false},
        {HUGE_VAL, false},
        {NAN, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tm tm;
        assert_int_equal(text_date(cases[i].seconds, &tm), cases[i].good);
        assert_int_equal(text_date_here(cases[i].seconds, &tm), cases[i].good);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_plain_is_escaped),
        cmocka_unit_test(characters_are_counted),
        cmocka_unit_test(only_years_of_four_digits_are_dates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
