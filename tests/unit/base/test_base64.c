/* base/base64: what is encoded decodes to the same bytes, and nothing else is taken. */

#include "base/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void the_examples_of_the_standard(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
        {"\xff\xef\xbe", "/+++"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF text = BUF_INIT, bytes = BUF_INIT;
        base64_encode(&text, cases[i][0], strlen(cases[i][0]));
        assert_string_equal(text.data, cases[i][1]);
        assert_true(base64_decode(&bytes, text.data, text.len));
        assert_string_equal(bytes.data, cases[i][0]);
    }
}

static void all_bytes_and_lengths_come_back(void **state) {
    (void)state;
    char data[256];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)i;
    for (size_t len = 0; len <= sizeof data; len++) {
        AUTO_BUF text = BUF_INIT, bytes = BUF_INIT;
        buf_adds(&text, "x");
        buf_adds(&bytes, "y");
        base64_encode(&text, data, len);
        assert_true(base64_decode(&bytes, text.data + 1, text.len - 1));
        assert_int_equal(bytes.len, len + 1);
        assert_memory_equal(bytes.data + 1, data, len);
    }
}

static void what_is_not_base64_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *behaviour, *text;
        bool good;
    } cases[] = {
        {"white space is skipped", " Zm\r\n9v\tYg =\n=\n", true},
        {"one digit", "Z", false},
        {"padding is missing", "Zg", false},
        {"padding is too short", "Zg=", false},
        {"padding is too long", "Zm8==", false},
        {"padding without digits", "====", false},
        {"digits after the padding", "Zg==Zg==", false},
        {"the alphabet of URLs", "_-__", false},
        {"another character", "Zm9v.", false},
        {"a byte of eight bits", "Zm9\xc3", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF bytes = BUF_INIT;
        if (base64_decode(&bytes, cases[i].text, strlen(cases[i].text)) != cases[i].good)
            fail_msg("%s", cases[i].behaviour);
        if (!cases[i].good && bytes.len)
            fail_msg("%s: something was added", cases[i].behaviour);
    }
    AUTO_BUF bytes = BUF_INIT;
    assert_false(base64_decode(&bytes, "Zm9v\0", 5));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_standard),
        cmocka_unit_test(all_bytes_and_lengths_come_back),
        cmocka_unit_test(what_is_not_base64_is_refused),
    };
    return cmocka_run_group_tests_name("base/base64", tests, NULL, NULL);
}
