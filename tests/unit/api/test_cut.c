/* api/mcp/cut: the beginning and the end of a text, whatever its pieces are. */

#include "api/mcp/cut.h"

#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *repeated(const char *what, unsigned n) {
    struct buf b = BUF_INIT;
    while (n-- > 0)
        buf_adds(&b, what);
    return buf_take(&b);
}

static void what_fits_stays_whole(void **state) {
    (void)state;
    struct cut c = {0};
    AUTO_BUF to = BUF_INIT;
    assert_true(cut_at_line(&c));
    cut_adds(&c, "one\\n");
    assert_true(cut_at_line(&c));
    cut_adds(&c, "tw\\u006f");
    assert_false(cut_at_line(&c));
    assert_false(cut_text(&c, 1000, "", &to));
    assert_string_equal(to.data, "one\ntwo");
    cut_done(&c);
}

/* Of few bytes and of very many: the first are counted, the others only looked at from both ends.
 */
static void the_middle_is_left_out(void **state) {
    (void)state;
    static const unsigned lines[] = {700, 200000};
    for (size_t i = 0; i < 2; i++) {
        struct cut c = {0};
        AUTO_BUF to = BUF_INIT;
        char *middle = repeated("0123456\\n", lines[i]);
        cut_adds(&c, "first\\n");
        cut_adds(&c, middle);
        cut_adds(&c, "last");
        assert_true(cut_text(&c, 3000, "see there", &to));
        assert_true(text_chars(to.data, to.len) <= 3000);
        assert_true(to.len > 2000);
        assert_memory_equal(to.data, "first\n0123456\n", 14);
        assert_string_equal(to.data + to.len - 12, "0123456\nlast");
        assert_non_null(strstr(to.data, "\n0123456\n[... "));
        assert_non_null(strstr(to.data, " left out here: see there ...]\n0123456\n"));
        cut_done(&c);
        free(middle);
    }
}

static void one_long_line_is_cut_between_characters(void **state) {
    (void)state;
    static const char *const chars[] = {"\xf0\x9f\x90\x8d", "\\ud83d\\udc0d", "\\\\", "\\u001b[m"};
    for (size_t i = 0; i < sizeof chars / sizeof *chars; i++) {
        struct cut c = {0};
        AUTO_BUF to = BUF_INIT;
        char *all = repeated(chars[i], 50000);
        cut_adds(&c, all);
        cut_text(&c, 2000, "", &to);
        assert_true(text_chars(to.data, to.len) <= 2000);
        for (size_t at = 0; at < to.len;) {
            uint32_t code;
            size_t n = text_char(to.data + at, to.len - at, &code);
            assert_true(n > 0);
            assert_int_not_equal(code, 0xfffd);
            at += n;
        }
        cut_done(&c);
        free(all);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_stays_whole),
        cmocka_unit_test(the_middle_is_left_out),
        cmocka_unit_test(one_long_line_is_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
