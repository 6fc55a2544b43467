/* What went through the network, by rule: init's records, and what of them is of one execution. */

#include "engine/network/used.h"

#include "base/buf.h"
#include "base/json.h"
#include "wire/traffic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void take(struct network_used *u, const struct traffic *rows, unsigned n) {
    AUTO_BUF records = BUF_INIT;
    for (unsigned i = 0; i < n; i++)
        traffic_put(&records, &rows[i]);
    network_used_take(u, records.data, records.len);
}

static void of_each_rule_what_came_since_is_told(void **state) {
    (void)state;
    const struct traffic first[] = {{"a", 1, 0, 10, 20}, {"b", 2, 0, 1, 1}},
                         then[] = {{"a", 3, 1, 15, 20}, {"b", 2, 0, 1, 1}, {"c", 0, 4, 0, 0}};
    struct network_used before = {0}, now = {0};
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    take(&before, first, 2);
    take(&now, then, 3);
    assert_int_equal(network_used_bytes(&now), 37);
    network_used_since(&now, &before);
    network_used_put(&now, &j);
    assert_string_equal(
        json.data,
        "[{\"rule\":\"a\",\"connections\":2,\"refused\":1,\"bytes_out\":5,\"bytes_in\":0},"
        "{\"rule\":\"c\",\"connections\":0,\"refused\":4,\"bytes_out\":0,\"bytes_in\":0}]");
    network_used_done(&before);
    network_used_done(&now);
}

/* Init is no enemy, but another server may have counted otherwise. */
static void numbers_that_went_back_are_none(void **state) {
    (void)state;
    const struct traffic more[] = {{"a", 5, 5, 50, 50}}, less[] = {{"a", 1, 1, 1, 51}};
    struct network_used before = {0}, now = {0};
    take(&before, more, 1);
    take(&now, less, 1);
    network_used_since(&now, &before);
    assert_int_equal(now.n, 1);
    assert_int_equal(now.rows[0].connections, 0);
    assert_int_equal(now.rows[0].bytes_in, 1);
    network_used_done(&before);
    network_used_done(&now);
}

static void records_have_a_bound(void **state) {
    (void)state;
    struct network_used now = {0};
    AUTO_BUF records = BUF_INIT;
    for (unsigned i = 0; i < 500; i++) {
        char rule[16];
        snprintf(rule, sizeof rule, "r%u", i);
        traffic_put(&records, &(struct traffic){rule, 1, 0, 0, 0});
    }
    network_used_take(&now, records.data, records.len);
    assert_int_equal(now.n, TRAFFIC_RULES + 1);
    network_used_take(&now, records.data, records.len - 1); /* instead of them */
    assert_int_equal(now.n, TRAFFIC_RULES + 1);
    network_used_take(&now, "x", 1);
    assert_int_equal(now.n, 0);
    network_used_done(&now);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_each_rule_what_came_since_is_told),
        cmocka_unit_test(numbers_that_went_back_are_none),
        cmocka_unit_test(records_have_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
