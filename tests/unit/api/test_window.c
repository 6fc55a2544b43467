/* api/mcp/window: what a model sees of a file. */

#include "api/mcp/window.h"

#include "base/fd.h"

#include <sys/mman.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct window window_of(const void *data, size_t len, uint64_t first, uint64_t lines) {
    struct window w = {.first = first, .lines = lines, .text = BUF_INIT};
    w.fd = memfd_create("window", MFD_CLOEXEC);
    assert_int_equal(write(w.fd, data, len), (ssize_t)len);
    while (window_slice(&w))
        ;
    assert_false(w.failed);
    return w;
}

static void lines_have_their_numbers(void **state) {
    (void)state;
    static const struct {
        const char *behaviour, *text;
        uint64_t first, lines;
        const char *want;
        uint64_t last;
        bool more;
    } cases[] = {
        {"nothing", "", 1, 10, "", 0, false},
        {"without a newline at the end", "a\nb", 1, 10, "     1\ta\n     2\tb\n", 2, false},
        {"with one", "a\n\nb\n", 1, 10, "     1\ta\n     2\t\n     3\tb\n", 3, false},
        {"of Windows", "a\r\nb\r\n", 1, 10, "     1\ta\n     2\tb\n", 2, false},
        {"a window", "a\nb\nc\nd\n", 2, 2, "     2\tb\n     3\tc\n", 3, true},
        {"its end is the file's", "a\nb\n", 2, 1, "     2\tb\n", 2, false},
        {"behind the end", "a\nb\n", 9, 1, "", 2, false},
        {"escapes", "\033[31m\001\n", 1, 1, "     1\t\\x1b[31m\\x01\n", 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct window w =
            window_of(cases[i].text, strlen(cases[i].text), cases[i].first, cases[i].lines);
        if (w.kind != WINDOW_TEXT || strcmp(w.text.data, cases[i].want) != 0 ||
            w.last != cases[i].last || w.more != cases[i].more)
            fail_msg("%s: \"%s\" last %d more %d", cases[i].behaviour, w.text.data, (int)w.last,
                     w.more);
        window_done(&w);
    }
}

static void long_lines_and_long_files_are_cut(void **state) {
    (void)state;
    AUTO_BUF text = BUF_INIT;
    for (unsigned i = 0; i < 300000; i++)
        buf_adds(&text, "x");
    buf_adds(&text, "\nnext\n");
    struct window w = window_of(text.data, text.len, 1, 10);
    assert_true(w.cut && !w.more && w.last == 2);
    assert_non_null(strstr(w.text.data, " [... 298000 bytes more in this line]\n     2\tnext\n"));
    window_done(&w);
    for (unsigned i = 0; i < 200000; i++)
        buf_adds(&text, "line\n");
    w = window_of(text.data, text.len, 3, 100000);
    assert_true(w.more && w.chars < WINDOW_CHARS + WINDOW_LINE);
    window_done(&w);
}

static void only_text_is_shown_as_text(void **state) {
    (void)state;
    static const struct {
        const char *data;
        size_t len;
        enum window_kind kind;
    } cases[] = {
        {"a\0b", 3, WINDOW_BINARY},   {"\xff\xfe", 2, WINDOW_BINARY},
        {"\xc3\xa4", 2, WINDOW_TEXT}, {"\x89PNG\r\n\x1a\n....", 12, WINDOW_IMAGE},
        {"GIF89a", 6, WINDOW_IMAGE},  {"RIFF....WAVE", 12, WINDOW_TEXT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct window w = window_of(cases[i].data, cases[i].len, 1, 10);
        assert_int_equal(w.kind, cases[i].kind);
        window_done(&w);
    }
}

/* A character of several bytes lies across the end of what is looked at first. */
static void a_character_may_be_cut_by_the_first_look(void **state) {
    (void)state;
    AUTO_BUF text = BUF_INIT;
    buf_adds(&text, "x");
    while (text.len < 9000)
        buf_adds(&text, "\xf0\x9f\x90\x8d");
    struct window w = window_of(text.data, text.len, 1, 10);
    assert_int_equal(w.kind, WINDOW_TEXT);
    window_done(&w);
}

/* It would take years to read it. */
static void holes_are_not_read(void **state) {
    (void)state;
    AUTO_BUF text = BUF_INIT;
    while (text.len < 9000)
        buf_adds(&text, "a\n");
    struct window w = {.first = 4501, .lines = 10, .text = BUF_INIT};
    w.fd = memfd_create("window", MFD_CLOEXEC);
    assert_int_equal(write(w.fd, text.data, text.len), (ssize_t)text.len);
    assert_int_equal(ftruncate(w.fd, 1ll << 60), 0);
    assert_int_equal(pwrite(w.fd, "\nend", 4, 1ll << 50), 4);
    unsigned slices = 1;
    while (window_slice(&w))
        slices++;
    assert_in_range(slices, 1, 3);
    assert_int_equal(w.last, 4502);
    assert_true(w.cut);
    assert_non_null(strstr(w.text.data, "  4501\t\\x00\\x00"));
    assert_non_null(strstr(w.text.data, "\n  4502\tend\\x00"));
    window_done(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_have_their_numbers),
        cmocka_unit_test(long_lines_and_long_files_are_cut),
        cmocka_unit_test(only_text_is_shown_as_text),
        cmocka_unit_test(a_character_may_be_cut_by_the_first_look),
        cmocka_unit_test(holes_are_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
