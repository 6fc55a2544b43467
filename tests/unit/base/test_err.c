/* base/err: an error keeps its reason, gains context, and never overruns its text. */

#include "base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void set_fills_text_and_code_and_fails(void **state) {
    (void)state;
    struct err e = {.kind = "old"};
    assert_int_equal(err_set(&e, ENOENT, "open %s", "x"), -1);
    assert_int_equal(e.code, ENOENT);
    assert_string_equal(e.text, "open x");
    assert_string_equal(e.kind, "");
}

static void a_failure_never_has_code_zero(void **state) {
    (void)state;
    struct err e;
    err_set(&e, 0, "why");
    assert_int_not_equal(e.code, 0);
}

static void wrap_puts_context_in_front_and_keeps_the_kind(void **state) {
    (void)state;
    struct err e;
    err_user(&e, "unknown_profile", "no profile %s", "x");
    assert_int_equal(err_wrap(&e, "run %d", 7), -1);
    assert_string_equal(e.text, "run 7: no profile x");
    assert_string_equal(e.kind, "unknown_profile");
    assert_int_equal(e.code, EINVAL);
}

static void sys_takes_errno_at_the_call(void **state) {
    (void)state;
    struct err e;
    errno = EACCES;
    assert_int_equal(err_sys(&e, "open %s", "f"), -1);
    assert_int_equal(e.code, EACCES);
    assert_string_equal(e.text, "open f: Permission denied");
}

static void long_texts_are_cut_not_overrun(void **state) {
    (void)state;
    char big[2 * ERR_TEXT_MAX];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    struct {
        struct err e;
        char guard[16];
    } box;
    memset(box.guard, 'g', sizeof box.guard);
    err_user(&box.e, big, "%s", big);
    for (int i = 0; i < 3; i++)
        err_wrap(&box.e, "%s", big);
    errno = EIO;
    err_sys(&box.e, "%s", big);
    err_wrap(&box.e, "%s", big);
    assert_int_equal(strlen(box.e.text), ERR_TEXT_MAX - 1);
    for (size_t i = 0; i < sizeof box.guard; i++)
        assert_int_equal(box.guard[i], 'g');
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_fills_text_and_code_and_fails),
        cmocka_unit_test(a_failure_never_has_code_zero),
        cmocka_unit_test(wrap_puts_context_in_front_and_keeps_the_kind),
        cmocka_unit_test(sys_takes_errno_at_the_call),
        cmocka_unit_test(long_texts_are_cut_not_overrun),
    };
    return cmocka_run_group_tests_name("base/err", tests, NULL, NULL);
}
