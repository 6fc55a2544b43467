/* base/num: numbers from outside are read strictly, and refusals say what is allowed. */

#include "base/num.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct num_case {
    const char *name, *text;
    uint64_t min, max;
    bool good;
    uint64_t want;
};

typedef int (*parser)(const char *, const struct num_rule *, uint64_t *, struct err *);

static void run_cases(parser parse, const struct num_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct num_rule rule = {"field", cases[i].min, cases[i].max};
        uint64_t v = 77;
        struct err e = {0};
        int r = parse(cases[i].text, &rule, &v, &e);
        if (r != (cases[i].good ? 0 : -1) || v != (cases[i].good ? cases[i].want : 77))
            fail_msg("%s: \"%s\" gave %d, %llu (%s)", cases[i].name, cases[i].text, r,
                     (unsigned long long)v, e.text);
        if (r < 0)
            assert_string_equal(e.kind, "bad_value");
    }
}

static void whole_numbers(void **state) {
    (void)state;
    static const struct num_case cases[] = {
        {"zero", "0", 0, 10, true, 0},
        {"lowest", "3", 3, 10, true, 3},
        {"highest", "10", 3, 10, true, 10},
        {"below", "2", 3, 10, false, 0},
        {"above", "11", 3, 10, false, 0},
        {"leading zeros", "007", 0, 10, true, 7},
        {"largest of all", "18446744073709551615", 0, UINT64_MAX, true, UINT64_MAX},
        {"one more overflows", "18446744073709551616", 0, UINT64_MAX, false, 0},
        {"wraps to a small number", "184467440737095516170", 0, UINT64_MAX, false, 0},
        {"thirty digits", "999999999999999999999999999999", 0, UINT64_MAX, false, 0},
        {"empty", "", 0, 10, false, 0},
        {"space before", " 1", 0, 10, false, 0},
        {"space after", "1 ", 0, 10, false, 0},
        {"line break after", "1\n", 0, 10, false, 0},
        {"minus", "-1", 0, UINT64_MAX, false, 0},
        {"plus", "+1", 0, 10, false, 0},
        {"hex", "0x1", 0, 10, false, 0},
        {"exponent", "1e3", 0, 9999, false, 0},
        {"decimal", "1.0", 0, 10, false, 0},
        {"unit", "5s", 0, 10, false, 0},
        {"word", "ten", 0, 10, false, 0},
    };
    run_cases(num_u64, cases, sizeof cases / sizeof *cases);
}

static void decimals_in_thousandths(void **state) {
    (void)state;
    static const struct num_case cases[] = {
        {"whole", "2", 0, 9000, true, 2000},
        {"one decimal", "1.5", 0, 9000, true, 1500},
        {"two decimals", "1.05", 0, 9000, true, 1050},
        {"three decimals", "0.001", 1, 9000, true, 1},
        {"no digit before the point", ".25", 0, 9000, true, 250},
        {"zero", "0", 0, 9000, true, 0},
        {"zero below the minimum", "0.000", 1, 9000, false, 0},
        {"above", "9.001", 0, 9000, false, 0},
        {"four decimals", "1.0001", 0, 9000, false, 0},
        {"no digit after the point", "1.", 0, 9000, false, 0},
        {"only a point", ".", 0, 9000, false, 0},
        {"two points", "1.2.3", 0, 9000, false, 0},
        {"comma", "1,5", 0, 9000, false, 0},
        {"minus", "-1", 0, 9000, false, 0},
        {"exponent", "1e1", 0, UINT64_MAX, false, 0},
        {"infinity", "inf", 0, UINT64_MAX, false, 0},
        {"not a number", "nan", 0, UINT64_MAX, false, 0},
        {"empty", "", 0, 9000, false, 0},
        {"largest that fits", "18446744073709551.615", 0, UINT64_MAX, true, UINT64_MAX},
        {"does not fit in thousandths", "18446744073709551.616", 0, UINT64_MAX, false, 0},
        {"does not fit at all", "99999999999999999999999", 0, UINT64_MAX, false, 0},
    };
    run_cases(num_milli, cases, sizeof cases / sizeof *cases);
}

static void a_32_bit_number_is_bounded_by_its_type(void **state) {
    (void)state;
    struct num_rule rule = {"pids", 1, UINT64_MAX};
    uint32_t v = 0;
    struct err e;
    assert_int_equal(num_u32("4294967295", &rule, &v, &e), 0);
    assert_int_equal(v, UINT32_MAX);
    assert_int_equal(num_u32("4294967296", &rule, &v, &e), -1);
    assert_string_equal(e.text,
                        "pids is \"4294967296\"; it must be a whole number from 1 to 4294967295");
}

static void a_refusal_names_field_value_and_what_is_allowed(void **state) {
    (void)state;
    struct num_rule rule = {"--timeout", 100, 3600500};
    uint64_t v;
    struct err e;
    assert_int_equal(num_milli("0", &rule, &v, &e), -1);
    assert_string_equal(e.text, "--timeout is \"0\"; it must be a number from 0.1 to 3600.5 "
                                "with at most three decimals");
    assert_int_equal(num_milli("a\nb", &rule, &v, &e), -1);
    assert_null(strchr(e.text, '\n'));
    char huge[5000];
    memset(huge, '9', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    assert_int_equal(num_milli(huge, &rule, &v, &e), -1);
    assert_non_null(strstr(e.text, "from 0.1 to 3600.5"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(decimals_in_thousandths),
        cmocka_unit_test(a_32_bit_number_is_bounded_by_its_type),
        cmocka_unit_test(a_refusal_names_field_value_and_what_is_allowed),
    };
    return cmocka_run_group_tests_name("base/num", tests, NULL, NULL);
}
