/* mcp/era and mcp/token: which era a request is of; texts that only we could have written. */

#include "mcp/era.h"
#include "mcp/token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *header, *body; /* NULL: none */
    bool modern;
} cases[] = {
    {NULL, NULL, false},         {"2025-03-26", NULL, false},
    {"2025-11-25", NULL, false}, {"2026-07-28", NULL, true},
    {"2027-01-01", NULL, true},  {"v999.0.0", NULL, false},
    {"9", NULL, false},          {"v999.0.0", "v999.0.0", true},
    {NULL, "2026-07-28", true},  {"2025-11-25", "2025-11-25", true},
};

static void a_request_is_of_one_era(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *params = cases[i].body
                             ? json_pack("{s:{s:s}}", "_meta", META_VERSION, cases[i].body)
                             : json_object();
        assert_int_equal(era_of(cases[i].header, params), cases[i].modern);
        json_decref(params);
    }
    assert_false(era_of("2025-11-25", NULL));
}

static void capabilities_are_what_a_client_can_do(void **state) {
    (void)state;
    json_t *all = json_pack("{s:{}, s:{}, s:{}}", "elicitation", "sampling", "roots");
    json_t *url = json_pack("{s:{s:{}}}", "elicitation", "url");
    json_t *both = json_pack("{s:{s:{}, s:{}}}", "elicitation", "url", "form");
    assert_int_equal(era_capabilities(all), CAN_ELICIT | CAN_SAMPLE | CAN_ROOTS);
    assert_int_equal(era_capabilities(url), 0);
    assert_int_equal(era_capabilities(both), CAN_ELICIT);
    assert_int_equal(era_capabilities(NULL), 0);
    json_decref(all);
    json_decref(url);
    json_decref(both);
}

static void a_token_is_for_one_use_and_owner(void **state) {
    (void)state;
    static const uint8_t secret[TOKEN_SECRET] = "secret", other[TOKEN_SECRET] = "other";
    char token[TOKEN_MAX], claim[TOKEN_MAX];
    token_write(secret, "session", "tenant/key", "7.2025-11-25.abc", token, sizeof token);
    assert_true(token_read(secret, "session", "tenant/key", token, claim, sizeof claim));
    assert_string_equal(claim, "7.2025-11-25.abc");
    assert_false(token_read(secret, "state", "tenant/key", token, claim, sizeof claim));
    assert_false(token_read(secret, "session", "tenant/other", token, claim, sizeof claim));
    assert_false(token_read(other, "session", "tenant/key", token, claim, sizeof claim));
    for (size_t i = 0; token[i]; i++) {
        char was = token[i];
        token[i] = was == 'x' ? 'y' : 'x';
        assert_false(token_read(secret, "session", "tenant/key", token, claim, sizeof claim));
        token[i] = '\0';
        assert_false(token_read(secret, "session", "tenant/key", token, claim, sizeof claim));
        token[i] = was;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_of_one_era),
        cmocka_unit_test(capabilities_are_what_a_client_can_do),
        cmocka_unit_test(a_token_is_for_one_use_and_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
