/* base/json_value: the inside of JSON strings, read and cut without a tree. What json_is_value
 * takes is fuzzed. */

#include "base/json_value.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void an_inside_means_its_text(void **state) {
    (void)state;
    static const struct {
        const char *inside, *want;
        size_t len;
    } cases[] = {
        {"", "", 0},
        {"plain", "plain", 5},
        {"a\\nb\\t\\\"\\\\\\/", "a\nb\t\"\\/", 7},
        {"\\u0041\\u00e4\\u20ac", "A\xc3\xa4\xe2\x82\xac", 6},
        {"\\ud83d\\udc0d", "\xf0\x9f\x90\x8d", 4},
        {"\\ud83dx", "\xef\xbf\xbdx", 4},
        {"\\udc0d", "\xef\xbf\xbd", 3},
        {"\\ud83d\\u0041",
         "\xef\xbf\xbd"
         "A",
         4},
        {"a\\u0000b", "a\0b", 3},
        {"cut\\u00", "cut\xef\xbf\xbd", 6}, /* no JSON: it ends, all the same */
        {"cut\\", "cut", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF text = BUF_INIT;
        json_unescape(&text, cases[i].inside, strlen(cases[i].inside));
        if (text.len != cases[i].len || memcmp(text.data, cases[i].want, text.len) != 0)
            fail_msg("%s: %s", cases[i].inside, text.data);
    }
}

static void it_is_cut_in_no_escape(void **state) {
    (void)state;
    static const struct {
        const char *inside;
        size_t at, want;
    } cases[] = {
        {"plain", 0, 0},
        {"plain", 3, 3},
        {"plain", 9, 5},
        {"a\\nb", 1, 1},
        {"a\\nb", 2, 3},
        {"\\\\\\n|", 3, 4},
        {"\\u0001\\u0001", 2, 6},
        {"\\ud83d\\udc0dx", 6, 12}, /* a pair is one character */
        {"\\ud83d\\u0041x", 6, 6},
        {"\xc3\xa4x", 1, 2},
        {"\\u00", 1, 4}, /* no JSON: it ends, all the same */
        {"\\", 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *inside = cases[i].inside;
        size_t got = json_inside_cut(inside, strlen(inside), cases[i].at);
        if (got != cases[i].want)
            fail_msg("%s from %zu: %zu", inside, cases[i].at, got);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_inside_means_its_text),
        cmocka_unit_test(it_is_cut_in_no_escape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
