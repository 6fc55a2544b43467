/* api/mcp/plain: what a terminal would show at the end. */

#include "api/mcp/plain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void only_what_a_terminal_shows_is_left(void **state) {
    (void)state;
    static const struct {
        const char *behaviour, *text, *want;
    } cases[] = {
        {"text", "a\tb\nc \xc3\xa4\n", "a\tb\nc \xc3\xa4\n"},
        {"colours", "\033[1;31mred\033[0m\n", "red\n"},
        {"titles", "\033]0;title\007a\033]8;;http://x\033\\link\033]8;;\033\\", "alink"},
        {"a title without an end leaves lines", "\033]0;title\nb", "\nb"},
        {"charsets and modes", "\033(Ba\033=b\033[?25lc", "abc"},
        {"a cut sequence", "a\033[31", "a"},
        {"a lonely escape", "a\033", "a"},
        {"two escapes", "\033\033[31mx", "x"},
        {"a line written anew", " 10%\r 50%\r100%\ndone", "100%\ndone"},
        {"the last state of a bar", "x\n 10%\r 50%\r", "x\n 50%"},
        {"lines of Windows", "a\r\nb\r\n", "a\nb\n"},
        {"returns before a line's end", "a\r\r\nb", "a\nb"},
        {"backspaces", "ab\b\bc\n\bd", "c\nd"},
        {"a backspace over a character of two bytes", "\xc3\xa4\b!", "!"},
        {"other controls", "a\001\177\007", "a\\x01\\x7f\\x07"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF to = BUF_INIT;
        buf_adds(&to, "before ");
        plain_add(&to, cases[i].text, strlen(cases[i].text));
        if (strcmp(to.data + 7, cases[i].want) != 0)
            fail_msg("%s: \"%s\"", cases[i].behaviour, to.data + 7);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_what_a_terminal_shows_is_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
