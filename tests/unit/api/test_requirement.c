/* api/profiles/requirement: a line is a name, versions and a condition, and nothing that leads pip
 * elsewhere. */

#include "api/profiles/requirement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void lines_that_are_requirements(void **state) {
    (void)state;
    static const char *const good[] = {
        "polars",
        "  rich>=13 ",
        "rich >= 13, < 15",
        "rich[jupyter]>=13",
        "a.b-c_d[x, y-z] ~= 1.0.post1",
        "numpy===2.0+local",
        "numpy!=2.*",
        "numpy==1!2.0",
        "typing-extensions; python_version < '3.11'",
        "colorama ; sys_platform == \"win32\" and (os_name=='nt' or extra == 'x-y')",
        "x==1.0\r",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        bool blank;
        const char *why = requirement_fault(good[i], strlen(good[i]), &blank);
        if (why || blank)
            fail_msg("%s: %s", good[i], why ? why : "blank");
    }
}

static void lines_that_say_nothing(void **state) {
    (void)state;
    static const char *const blanks[] = {"", "   ", "\t", "# a comment", "  # -r x", "\r"};
    for (size_t i = 0; i < sizeof blanks / sizeof *blanks; i++) {
        bool blank;
        assert_null(requirement_fault(blanks[i], strlen(blanks[i]), &blank));
        assert_true(blank);
    }
}

static void lines_that_are_refused_say_why(void **state) {
    (void)state;
    static const struct {
        const char *line, *says;
    } bad[] = {
        {"--index-url=http://x", "option"},
        {"-e .", "option"},
        {"-", "option"},
        {"x @ file:///etc/passwd", "address"},
        {"x@y", "address"},
        {"https://x/y.whl", "address"},
        {"../x", "path"},
        {"x/y", "path"},
        {".", "path"},
        {"C:\\x.whl", "path"},
        {"x --hash=sha256:0", "no requirement"},
        {"x; a --global-option", "no requirement"},
        {"x; a\n-r y", "no requirement"},
        {"x\n", "no requirement"},
        {"x # comment", "no requirement"},
        {"x-", "no requirement"},
        {"_x", "no requirement"},
        {"x[", "no requirement"},
        {"x[]", "no requirement"},
        {"x>", "no requirement"},
        {"x=1", "no requirement"},
        {"x>= --pre", "no requirement"},
        {"x>=-1", "no requirement"},
        {"x>=1,", "no requirement"},
        {"x>=1 y", "no requirement"},
        {"${X}", "no requirement"},
        {"x;`id`", "no requirement"},
        {"x\xc3\xa9", "no requirement"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bool blank;
        const char *why = requirement_fault(bad[i].line, strlen(bad[i].line), &blank);
        if (!why || !strstr(why, bad[i].says))
            fail_msg("%s: %s", bad[i].line, why ? why : "accepted");
    }
}

static void a_line_has_a_bound_and_may_have_any_bytes(void **state) {
    (void)state;
    char line[REQUIREMENT_MAX + 2];
    bool blank;
    memset(line, 'x', sizeof line);
    assert_null(requirement_fault(line, REQUIREMENT_MAX, &blank));
    assert_non_null(requirement_fault(line, REQUIREMENT_MAX + 1, &blank));
    assert_non_null(requirement_fault("x\0y", 3, &blank));
    assert_non_null(requirement_fault("x;\0", 3, &blank));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_that_are_requirements),
        cmocka_unit_test(lines_that_say_nothing),
        cmocka_unit_test(lines_that_are_refused_say_why),
        cmocka_unit_test(a_line_has_a_bound_and_may_have_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
