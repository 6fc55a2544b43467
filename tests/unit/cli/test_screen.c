/* What a program prints at a terminal: colours and movements pass, orders to the terminal do not,
 * whole or in pieces. */

#include "cli/screen.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct screen_case {
    const char *behaviour, *text, *shown;
} cases[] = {
    {"text", "a\tb\r\nc\b\a\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x8d", NULL},
    {"colours", "\033[1;31mred\033[0m \033[38;2;1;2;3mx\033[4:3my\033[m", NULL},
    {"a bar", "\r\033[K10%\033[A\033[2K\033[?25l\033[?25h\0337\0338", NULL},
    {"the clipboard", "a\033]52;c;cm0gLXJm\ab\033]52;c;cm0gLXJm\033\\c", "abc"},
    {"a title", "\033]0;title\ax", "x"},
    {"a link: its text", "\033]8;;http://a.b\033\\text\033]8;;\033\\", "text"},
    {"strings to the device", "\033P$qm\033\\a\033_Gx\033\\b\033^x\033\\c\033Xx\033\\d", "abcd"},
    {"questions", "\033[c\033[>c\033[6n\033[5n\033[?6n\033[21t\033[>q\033[?1$p\033[x\005\033Z", ""},
    {"keys, mice, paste", "\033[?1000h\033[?1006h\033[?2004h\033[>4;1m\033[=1u\033=\033>", ""},
    {"a reset", "\033c\033[!p\033[4h", ""},
    {"other letters", "\033(0qqq\033(B\016q\017", "qqqq"},
    {"controls of eight bits",
     "a\xc2\x9b"
     "31m\xc2\x9d"
     "52;c;x\ab\xc2\x90q\xc2\x9c"
     "c\xc2\x85",
     "a\033[31mbc"},
    {"the same as bytes",
     "a\x9b"
     "6nb\x9d",
     "a6nb"},
    {"a character that is no control", "\xc2\xa0\xc2\xb5\xc3\x9b", NULL},
    {"a broken character",
     "\xc2"
     "a\xe2\x82z\xf0\033[6n",
     "a\xe2\x82z\xf0"},
    {"a sequence that is broken off", "\033[3\033[31mx\033\033[6ny", "\033[31mxy"},
    {"a string that does not end", "\033]52;c;abc\nnext", "\nnext"},
    {"a sequence that does not end", "\033[12\nnext", "\nnext"},
    {"a sequence that is too long", "\033[1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1mx",
     "x"},
    {"nothing but ESC", "\033", ""},
};

static void every_piece_of_it(const struct screen_case *c, size_t step) {
    AUTO_BUF shown = BUF_INIT;
    struct screen s = {0};
    size_t len = strlen(c->text);
    for (size_t at = 0; at < len; at += step)
        screen_filter(&s, &shown, c->text + at, len - at < step ? len - at : step);
    if (strcmp(shown.data, c->shown ? c->shown : c->text) != 0)
        fail_msg("%s, in pieces of %zu: \"%s\"", c->behaviour, step, shown.data);
}

static void orders_to_the_terminal_are_left_out(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        every_piece_of_it(&cases[i], 1);
        every_piece_of_it(&cases[i], 2);
        every_piece_of_it(&cases[i], 1000);
    }
}

static void a_file_or_pipe_gets_all_of_it(void **state) {
    (void)state;
    AUTO_BUF shown = BUF_INIT;
    struct screen s = {0};
    screen_add(&s, -1, &shown, "\033]52;c;x\a\x9b", 10);
    assert_int_equal(shown.len, 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_to_the_terminal_are_left_out),
        cmocka_unit_test(a_file_or_pipe_gets_all_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
