/* Numbers as people read them. */

#include "remote/people.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void check(void (*fn)(struct buf *, double), double v, const char *text) {
    AUTO_BUF b = BUF_INIT;
    fn(&b, v);
    assert_string_equal(b.data, text);
}

static void test_times(void **state) {
    (void)state;
    static const struct {
        double s;
        const char *text;
    } cases[] = {{0, "0 ms"},         {0.0011, "1.1 ms"},
                 {0.0002, "0.2 ms"},  {0.25, "250 ms"},
                 {0.01234, "12 ms"},  {1, "1 s"},
                 {6.906033, "6.9 s"}, {30, "30 s"},
                 {119.4, "119 s"},    {180, "3 min"},
                 {7200, "2 h"},       {864000, "10 d"},
                 {-1, "0 ms"},        {1e300, "1000000000000000 d"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(people_time, cases[i].s, cases[i].text);
}

static void test_sizes(void **state) {
    (void)state;
    static const struct {
        double n;
        const char *text;
    } cases[] = {{0, "0 bytes"},          {1023, "1023 bytes"},           {1536, "1.5 KiB"},
                 {16777216, "16 MiB"},    {74506240, "71.1 MiB"},         {603979776, "576 MiB"},
                 {4294967296.0, "4 GiB"}, {1e300, "1000000000000000 TiB"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(people_bytes, cases[i].n, cases[i].text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_times), cmocka_unit_test(test_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
