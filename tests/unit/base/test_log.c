/* base/log: what users control cannot break a line, and never overruns. */

#include "base/fd.h"
#include "base/log.h"
#include "base/log_line.h"

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

/* The line without its first four names. */
static void line_of(const char *message, bool json, size_t cap, char *ret, size_t *ret_len) {
    struct log_line l = {json, "T", "warn", "server", 7, message};
    char line[4096];
    const char *head = json ? "{\"ts\":\"T\",\"level\":\"warn\",\"process\":\"server\",\"pid\":7,"
                            : "ts=T level=warn process=server pid=7 ";
    size_t n = log_line_write(&l, line, cap);
    assert_true(n <= cap && n > strlen(head) && line[n - 1] == '\n');
    assert_memory_equal(line, head, strlen(head));
    *ret_len = n - 1 - strlen(head);
    memcpy(ret, line + strlen(head), *ret_len);
    ret[*ret_len] = '\0';
}

static void messages_become_logfmt_and_json(void **state) {
    (void)state;
    static const struct {
        const char *name, *message, *logfmt, *json;
    } cases[] = {
        {"words alone", "stopping", "msg=stopping", "\"msg\":\"stopping\"}"},
        {"several words", "server ended", "msg=\"server ended\"", "\"msg\":\"server ended\"}"},
        {"pairs", "a b=1 c=x", "msg=a b=1 c=x", "\"msg\":\"a\",\"b\":1,\"c\":\"x\"}"},
        {"a quoted value", "a b=\"x y\" c=2", "msg=a b=\"x y\" c=2",
         "\"msg\":\"a\",\"b\":\"x y\",\"c\":2}"},
        {"what looks like a key in a quoted value", "a b=\"x c=1\" d=2", "msg=a b=\"x c=1\" d=2",
         "\"msg\":\"a\",\"b\":\"x c=1\",\"d\":2}"},
        {"a number in quotes is text", "a b=\"1\"", "msg=a b=\"1\"", "\"msg\":\"a\",\"b\":\"1\"}"},
        {"numbers", "a b=-1.5 c=01 d=1.5.2 e=1e5", "msg=a b=-1.5 c=01 d=1.5.2 e=1e5",
         "\"msg\":\"a\",\"b\":-1.5,\"c\":\"01\",\"d\":\"1.5.2\",\"e\":\"1e5\"}"},
        {"a value with blanks", "a why=not now b=1", "msg=a why=\"not now\" b=1",
         "\"msg\":\"a\",\"why\":\"not now\",\"b\":1}"},
        {"escapes of log_quote", "a b=\"\\x0a\\x22\\x5c\\x1b\"", "msg=a b=\"\\x0a\\x22\\x5c\\x1b\"",
         "\"msg\":\"a\",\"b\":\"\\u000a\\\"\\\\\\u001b\"}"},
        {"a line break that nobody quoted", "a\nb", "msg=\"a\\x0ab\"", "\"msg\":\"a\\u000ab\"}"},
        {"UTF-8", "a b=\"gr\xc3\xbcn\"", "msg=a b=\"gr\xc3\xbcn\"",
         "\"msg\":\"a\",\"b\":\"gr\xc3\xbcn\"}"},
        {"not UTF-8", "a b=\"\xff\xc3\"", "msg=a b=\"\\xff\\xc3\"",
         "\"msg\":\"a\",\"b\":\"\\ufffd\\ufffd\"}"},
        {"an empty value", "a b= c=1", "msg=a b=\"\" c=1", "\"msg\":\"a\",\"b\":\"\",\"c\":1}"},
        {"cut within quotes", "a b=\"x y", "msg=a b=\"\\x22x y\"",
         "\"msg\":\"a\",\"b\":\"\\\"x y\"}"},
        {"no key: in parentheses", "off (cgroup=none)", "msg=\"off (cgroup=none)\"",
         "\"msg\":\"off (cgroup=none)\"}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char got[4096];
        size_t len;
        line_of(cases[i].message, false, 4096, got, &len);
        if (strcmp(got, cases[i].logfmt) != 0)
            fail_msg("%s: got %s, want %s", cases[i].name, got, cases[i].logfmt);
        line_of(cases[i].message, true, 4096, got, &len);
        if (strcmp(got, cases[i].json) != 0)
            fail_msg("%s: got %s, want %s", cases[i].name, got, cases[i].json);
    }
}

static void line_stays_whole(const char *message, bool json) {
    for (size_t cap = 256; cap < 300; cap++) {
        char got[4096];
        size_t n;
        line_of(message, json, cap, got, &n);
        assert_true(json ? got[n - 1] == '}' && got[n - 2] == '"' : n > 0);
        assert_null(strchr(got, '\n'));
    }
}

static void lines_fit_every_size_and_stay_whole(void **state) {
    (void)state;
    static const char fill[] = {'x', '\n', '"', '\xc3', ' '};
    for (size_t len = 0; len < 300; len += 7) {
        for (size_t f = 0; f < sizeof fill; f++) {
            char message[400];
            memset(message, fill[f], len);
            memcpy(message, "a k=\"", len < 5 ? len : 5);
            message[len] = '\0';
            line_stays_whole(message, false);
            line_stays_whole(message, true);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quote_escapes_and_cuts),
        cmocka_unit_test(quote_stays_within_every_size),
        cmocka_unit_test(levels_are_words),
        cmocka_unit_test(messages_become_logfmt_and_json),
        cmocka_unit_test(lines_fit_every_size_and_stay_whole),
    };
    return cmocka_run_group_tests_name("base/log", tests, NULL, NULL);
}
