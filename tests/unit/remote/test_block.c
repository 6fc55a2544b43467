/* remote/block: when what was typed is run, and when more is asked for. */

#include "remote/shell/block.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void more_is_asked_for_only_where_it_is_needed(void **state) {
    (void)state;
    static const struct {
        const char *name, *text;
        bool whole;
    } cases[] = {
        {"a line", "x = 1\n", true},
        {"a colon", "for i in x:\n", false},
        {"a body", "for i in x:\n    f(i)\n", false},
        {"an empty line ends it", "for i in x:\n    f(i)\n\n", true},
        {"a line of blanks too", "for i in x:\n    f(i)\n  \n", true},
        {"a colon and a comment", "if x: # why\n", false},
        {"all on one line", "if x: y()\n", true},
        {"a decorator", "@cache\n", false},
        {"matrix product is none", "a @ b\n", true},
        {"an open bracket", "f(1,\n", false},
        {"a closed one", "f(1,\n  2)\n", true},
        {"an empty line closes none", "f(1,\n\n", false},
        {"a bracket in a string", "'('\n", true},
        {"a bracket in a comment", "x # (\n", true},
        {"too many closed", "x)\n", true},
        {"a slice's colon", "x[1:\n", false},
        {"a colon inside brackets", "{1:\n2}\n", true},
        {"a triple quote", "s = '''a\n", false},
        {"its end", "s = '''a\nb'''\n", true},
        {"the other quotes inside", "s = '''a\"\"\"\n", false},
        {"an escaped quote", "'it\\'s ('\n", true},
        {"a string that nobody closed", "s = 'a\n", true},
        {"a colon in a string", "s = 'a:'\n", true},
        {"an empty string", "s = ''\n", true},
        {"a backslash", "x = 1 + \\\n", false},
        {"and its line", "x = 1 + \\\n2\n", true},
        {"a backslash and nothing", "x = 1 + \\\n\n", true},
        {"a class", "class A:\n    def f(self):\n        pass\n", false},
        {"a magic", "%timeit f(\n", true},
        {"a command", "!echo it's (\n", true},
        {"a question", "?print\n", true},
        {"a question behind", "print?\n", true},
        {"a cell magic", "%%bash\n", false},
        {"with its body", "%%bash\necho it's\n", false},
        {"and its end", "%%bash\necho it's\n\n", true},
        {"nothing", "", true},
        {"a line without its end", "x = (", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (block_is_whole(cases[i].text) != cases[i].whole)
            fail_msg("%s: %s", cases[i].name, cases[i].whole ? "asks for more" : "is run");
}

static void the_next_line_is_indented(void **state) {
    (void)state;
    static const struct {
        const char *text;
        unsigned indent;
    } cases[] = {
        {"", 0},
        {"x = 1\n", 0},
        {"for i in x:\n", 4},
        {"for i in x: # why\n", 4},
        {"for i in x:\n    f(i)\n", 4},
        {"for i in x:\n    if i:\n", 8},
        {"def f():\n    return 1\n", 0},
        {"def f():\n    if x:\n        raise E\n", 4},
        {"def f():\n    returned = 1\n", 4},
        {"def f():\n    x = 'a:'\n", 4},
        {"f(1,\n  2,\n", 2},
        {"s = '''a\n    b\n", 0},
        {"for i in x:\n    f(i)\n\n", 0},
        {"@cache\n", 0},
        {"if x:\n\tf()\n", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(block_indent(cases[i].text), cases[i].indent);
}

static void what_belongs_to_the_block_before(void **state) {
    (void)state;
    assert_true(block_goes_on_with("    return"));
    assert_true(block_goes_on_with("\tx"));
    assert_true(block_goes_on_with("else:"));
    assert_true(block_goes_on_with("except E as e:"));
    assert_false(block_goes_on_with("elsewhere = 1"));
    assert_false(block_goes_on_with("x = 1"));
    assert_true(block_is_compound("def f():\n    x\n\n"));
    assert_false(block_is_compound("a = input()\n"));
    assert_false(block_is_compound("f(1,\n"));
    assert_false(block_is_compound("%%bash\n"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_is_asked_for_only_where_it_is_needed),
        cmocka_unit_test(the_next_line_is_indented),
        cmocka_unit_test(what_belongs_to_the_block_before),
    };
    return cmocka_run_group_tests_name("remote/block", tests, NULL, NULL);
}
