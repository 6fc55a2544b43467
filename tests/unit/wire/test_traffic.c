/* wire/traffic: what init tells of the network, by rules that users wrote. */

#include "wire/messages.h"
#include "wire/traffic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void records_come_back_as_they_were(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    const struct traffic in[] = {{"*.example.org:443", 3, 1, UINT64_MAX, 7}, {"", 0, 2, 0, 0}};
    for (int i = 0; i < 2; i++)
        traffic_put(&b, &in[i]);
    const uint8_t *at = (const uint8_t *)b.data, *end = at + b.len;
    for (int i = 0; i < 2; i++) {
        struct traffic out;
        assert_true(traffic_get(&at, end, &out));
        assert_string_equal(out.rule, in[i].rule);
        assert_true(out.connections == in[i].connections && out.refused == in[i].refused);
        assert_true(out.bytes_out == in[i].bytes_out && out.bytes_in == in[i].bytes_in);
    }
    assert_true(at == end);
}

static void a_record_that_is_cut_anywhere_is_none(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    traffic_put(&b, &(struct traffic){.rule = "rule"});
    for (size_t len = 0; len < b.len; len++) {
        uint8_t *copy = malloc(len + 1); /* so that a sanitizer sees a byte too many read */
        memcpy(copy, b.data, len);
        const uint8_t *at = copy;
        struct traffic out;
        assert_false(traffic_get(&at, copy + len, &out));
        free(copy);
    }
}

static void a_rule_that_is_too_long_is_none(void **state) {
    (void)state;
    char rule[WIRE_RULE + 2];
    memset(rule, 'x', sizeof rule);
    rule[WIRE_RULE + 1] = '\0';
    AUTO_BUF b = BUF_INIT;
    traffic_put(&b, &(struct traffic){.rule = rule});
    const uint8_t *at = (const uint8_t *)b.data;
    struct traffic out;
    assert_false(traffic_get(&at, at + b.len, &out));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back_as_they_were),
        cmocka_unit_test(a_record_that_is_cut_anywhere_is_none),
        cmocka_unit_test(a_rule_that_is_too_long_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
