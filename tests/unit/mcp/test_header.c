/* mcp/header: values that travel encoded, and those that only look like it. */

#include "mcp/header.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *value, *meaning; /* NULL: refused */
} cases[] = {
    {"Hello", "Hello"},
    {"  Hello \t", "Hello"},
    {"", ""},
    {"=?base64?SGVsbG8=?=", "Hello"},
    {" =?base64?SGVsbG8=?= ", "Hello"},
    {"=?base64?"
     "?=",
     ""},
    {"=?base64?SGVsbG8?=", NULL},
    {"=?base64?SGVs!!!bG8=?=", NULL},
    {"=?base64?SGVs bG8=?=", NULL},
    {"=?base64?/w==?=", NULL},
    {"=?base64?SGVsbG8=", "=?base64?SGVsbG8="},
    {"SGVsbG8=?=", "SGVsbG8=?="},
    {"=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="},
    {"=?base64?=", "=?base64?="},
};

static void values_mean_what_was_encoded(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF to = BUF_INIT;
        bool good = mcp_header_decode(cases[i].value, &to);
        assert_int_equal(good, cases[i].meaning != NULL);
        if (good)
            assert_string_equal(to.data, cases[i].meaning);
    }
}

static void what_is_encoded_comes_back(void **state) {
    (void)state;
    static const char *const texts[] = {"plain", "",     " led",         "trailed ",
                                        "grün",  "a\nb", "=?base64?x?=", "\t"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        AUTO_BUF value = BUF_INIT;
        mcp_header_encode(texts[i], strlen(texts[i]), &value);
        for (size_t k = 0; k < value.len; k++)
            assert_true(value.data[k] >= 0x20 && value.data[k] < 0x7f);
        assert_true(mcp_header_is(value.data, texts[i], strlen(texts[i])));
        assert_false(mcp_header_is(value.data, "other", 5));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_mean_what_was_encoded),
        cmocka_unit_test(what_is_encoded_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
