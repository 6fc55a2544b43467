/* base/id: ids have their prefix, their length, and never repeat. */

#include "base/id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void is_the_prefix_and_32_hex_digits(void **state) {
    (void)state;
    char id[ID_MAX];
    assert_ptr_equal(id_make("exec_", id, sizeof id), id);
    assert_memory_equal(id, "exec_", 5);
    assert_int_equal(strlen(id), 5 + ID_DIGITS);
    assert_int_equal(strspn(id + 5, "0123456789abcdef"), ID_DIGITS);
}

static void fits_exactly(void **state) {
    (void)state;
    char id[3 + ID_DIGITS + 1];
    id_make("ab-", id, sizeof id);
    assert_int_equal(strlen(id), sizeof id - 1);
}

static void does_not_repeat(void **state) {
    (void)state;
    enum { MANY = 300 };
    static char ids[MANY][ID_MAX];
    for (size_t i = 0; i < MANY; i++) {
        id_make("", ids[i], sizeof ids[i]);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(ids[i], ids[k]);
    }
}

static void every_digit_varies(void **state) {
    (void)state;
    unsigned seen[ID_DIGITS] = {0};
    for (int i = 0; i < 200; i++) {
        char id[ID_MAX];
        id_make("", id, sizeof id);
        for (size_t k = 0; k < ID_DIGITS; k++)
            seen[k] |= 1u << (id[k] % 32);
    }
    for (size_t k = 0; k < ID_DIGITS; k++)
        assert_true(__builtin_popcount(seen[k]) >= 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_prefix_and_32_hex_digits),
        cmocka_unit_test(fits_exactly),
        cmocka_unit_test(does_not_repeat),
        cmocka_unit_test(every_digit_varies),
    };
    return cmocka_run_group_tests_name("base/id", tests, NULL, NULL);
}
