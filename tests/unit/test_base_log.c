/* base/log: what users control cannot break a line, and never overruns. */

#include "base/fd.h"
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void quote_escapes_and_cuts(void **state) {
    (void)state;
    static const struct {
        const char *name, *text, *want;
        size_t cap;
    } cases[] = {
        {"empty", "", "\"\"", 8},
        {"plain", "abc", "\"abc\"", 32},
        {"line break", "a\nb", "\"a\\x0ab\"", 32},
        {"terminal escape", "\x1b[2J", "\"\\x1b[2J\"", 32},
        {"quote and backslash", "\"\\", "\"\\x22\\x5c\"", 32},
        {"DEL", "\x7f", "\"\\x7f\"", 32},
        {"UTF-8 stays", "grün", "\"grün\"", 32},
        {"too long is cut and says so", "abcdefghijkl", "\"abc…\"", 12},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[32];
        if (strcmp(log_quote(cases[i].text, out, cases[i].cap), cases[i].want) != 0)
            fail_msg("%s: got %s, want %s", cases[i].name, out, cases[i].want);
    }
}

static void quote_stays_within_every_size(void **state) {
    (void)state;
    static const char fill[] = {'x', '\n', '"'};
    for (size_t cap = 8; cap < 48; cap++) {
        for (size_t len = 0; len < 64; len++) {
            for (size_t f = 0; f < sizeof fill; f++) {
                char text[64] = {0};
                memset(text, fill[f], len);
                AUTO_FREE char *out = malloc(cap + 8);
                assert_non_null(out);
                memset(out, 'g', cap + 8);
                log_quote(text, out, cap);
                assert_true(strlen(out) < cap);
                assert_int_equal(out[strlen(out) - 1], '"');
                assert_memory_equal(out + cap, "gggggggg", 8);
            }
        }
    }
}

static void levels_are_words(void **state) {
    (void)state;
    enum log_level level;
    struct err e;
    assert_int_equal(log_level_parse("debug", &level, &e), 0);
    assert_int_equal(level, LOG_DEBUG);
    assert_int_equal(log_level_parse("error", &level, &e), 0);
    assert_int_equal(level, LOG_ERROR);
    assert_int_equal(log_level_parse("loud", &level, &e), -1);
    assert_string_equal(e.kind, "bad_value");
    assert_non_null(strstr(e.text, "\"loud\""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quote_escapes_and_cuts),
        cmocka_unit_test(quote_stays_within_every_size),
        cmocka_unit_test(levels_are_words),
    };
    return cmocka_run_group_tests_name("base/log", tests, NULL, NULL);
}
