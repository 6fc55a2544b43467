/* remote/sandbox: command lines, paths, URLs, tables' text and the bar. */

#include "base/url.h"
#include "remote/sandbox/options.h"
#include "remote/sandbox/place.h"
#include "remote/sandbox/progress.h"

#include "base/fd.h"
#include "base/text.h"
#include "cli/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The words of a line, split at blanks. */
static int parse(const char *line, struct sandbox_options *o, struct err *e) {
    static char copy[512], *argv[32];
    int argc = 0;
    strncpy(copy, line, sizeof copy - 1);
    for (char *rest = copy, *word; (word = strsep(&rest, " ")) && argc < 31;)
        argv[argc++] = word;
    argv[argc] = NULL;
    return sandbox_options_parse(argc, argv, o, e);
}

static void command_lines_are_refused_with_a_reason(void **state) {
    (void)state;
    static const struct {
        const char *line, *want; /* a part of the message; NULL: it is good */
    } cases[] = {
        {"sandbox create", NULL},
        {"sandbox create --ttl 60 --idle 5 --metadata a=b --metadata c= --env A=1", NULL},
        {"sandbox create x", "\"x\" is one word too many"},
        {"sandbox create --ttl", "\"--ttl\" needs a value"},
        {"sandbox create --ttl 0", "--ttl"},
        {"sandbox create --ttl 1.5", "--ttl"},
        {"sandbox create --metadata a", "NAME=VALUE"},
        {"sandbox create --metadata =a", "NAME=VALUE"},
        {"sandbox create --keep", "\"--keep\" is no option"},
        {"sandbox", "say what to do"},
        {"sandbox burn", "no verb \"burn\""},
        {"sandbox show", "ID is missing"},
        {"sandbox show a b", "\"b\" is one word too many"},
        {"sandbox delete a b c", NULL},
        {"sandbox exec a", "nothing to run"},
        {"sandbox exec a 1+1", NULL},
        {"sandbox exec a -c 1+1 --timeout 1.5", NULL},
        {"sandbox exec a -c 1+1 x", "not several"},
        {"sandbox exec a --shell ls -- ls", "not several"},
        {"sandbox exec a -- ls -l", NULL},
        {"sandbox exec a --kernel k -- ls", "--kernel is for Python"},
        {"sandbox exec a x --cwd /", "--cwd is for commands"},
        {"sandbox exec a x --background", "--background is for commands"},
        {"sandbox exec a x --images big", "--images is \"big\""},
        {"sandbox put a b", "SOURCE and DESTINATION"},
        {"sandbox put a b c d", NULL},
        {"sandbox put a -- -b -c", NULL},
        {"sandbox ls a -lR", NULL},
        {"sandbox ls a -x", "\"-x\" is no option"},
        {"sandbox logs a -f", "-f needs the COMMAND"},
        {"sandbox logs a b -f", NULL},
        {"shell", NULL},
        {"shell a", NULL},
        {"shell a --keep", "have no meaning"},
        {"shell --kernel k", "needs the sandbox's ID"},
        {"shell a --kernel k", NULL},
        {"shell a b", "\"b\" is one word too many"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sandbox_options o;
        struct err e;
        int rc = parse(cases[i].line, &o, &e);
        if (rc == 0 ? cases[i].want != NULL : !cases[i].want || !strstr(e.text, cases[i].want))
            fail_msg("%s: %s", cases[i].line, rc ? e.text : "is taken");
        sandbox_options_done(&o);
    }
}

static void words_and_values_arrive(void **state) {
    (void)state;
    struct sandbox_options o;
    struct err e;
    assert_int_equal(parse("sandbox exec box --timeout 1.5 --env A=1 -- ls -l --json", &o, &e), 0);
    assert_int_equal(o.verb, SANDBOX_EXEC);
    assert_int_equal(o.limits.timeout_ms, 1500);
    assert_int_equal(o.words.n, 1);
    assert_int_equal(o.command.n, 3);
    assert_string_equal(o.command.items[2], "--json");
    assert_false(o.json);
    sandbox_options_done(&o);
    assert_int_equal(parse("sandbox list --json --ttl", &o, &e), -1);
    assert_true(o.json);
    sandbox_options_done(&o);
}

static void paths_in_a_sandbox_stay_in_its_workspace(void **state) {
    (void)state;
    static const struct {
        const char *word, *want; /* NULL: refused */
        bool is_dir;
    } cases[] = {
        {"", "", true},
        {".", "", true},
        {"/workspace", "", true},
        {"/workspace/", "", true},
        {"/workspaces", NULL, false},
        {"/etc/passwd", NULL, false},
        {"a", "a", false},
        {"a/", "a", true},
        {"./a//b/./c", "a/b/c", false},
        {"/workspace/a", "a", false},
        {"a/.", "a", true},
        {"..", NULL, false},
        {"a/../b", NULL, false},
        {"a/..b", "a/..b", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_FREE char *path = NULL;
        bool is_dir = false;
        struct err e;
        int rc = place_path(cases[i].word, &path, &is_dir, &e);
        if (!cases[i].want
                ? rc == 0
                : rc < 0 || strcmp(path, cases[i].want) != 0 || is_dir != cases[i].is_dir)
            fail_msg("\"%s\" is \"%s\", %s", cases[i].word, rc == 0 ? path : e.text,
                     is_dir ? "a directory" : "no directory");
    }
}

static void urls_have_only_what_may_be_in_one(void **state) {
    (void)state;
    AUTO_BUF url = BUF_INIT;
    place_url(&url, "/v1/sandboxes/sbx_1", "files", "a b/ä?#%.txt");
    assert_string_equal(url.data, "/v1/sandboxes/sbx_1/files/a%20b/%C3%A4%3F%23%25.txt");
    buf_clear(&url);
    url_encode(&url, "a/b&c=d", "");
    assert_string_equal(url.data, "a%2Fb%26c%3Dd");
}

static void no_control_character_reaches_a_terminal(void **state) {
    (void)state;
    static const char text[] = "a\033[2J\tb\x7f\xc2\x9b"
                               "1mc\xc3\xa4\xc2\xa0\xff\x9b\xe2\x82";
    AUTO_BUF plain = BUF_INIT;
    text_add_plain(&plain, text, sizeof text - 1);
    assert_string_equal(plain.data,
                        "a\\x1b[2J\\x09b\\x7f\\u009b1mc\xc3\xa4\xc2\xa0\\xff\\x9b\\xe2\\x82");
}

static void the_bar_says_how_far_it_is(void **state) {
    (void)state;
    static const struct {
        uint64_t done, total, ms;
        const char *want;
    } cases[] = {
        {0, 1000, 0, "f  [........................]   0%  0 B"},
        {500, 1000, 1000, "f  [############............]  50%  500 B  500 B/s  2 s left"},
        {1500, 1000, 1000, "f  [########################] 100%  1.5 kB  1.5 kB/s"},
        {2500000, 0, 1000, "f  2.5 MB  2.5 MB/s"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF line = BUF_INIT;
        progress_write(&line, "f", cases[i].done, cases[i].total, cases[i].ms);
        assert_string_equal(line.data, cases[i].want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_lines_are_refused_with_a_reason),
        cmocka_unit_test(words_and_values_arrive),
        cmocka_unit_test(paths_in_a_sandbox_stay_in_its_workspace),
        cmocka_unit_test(urls_have_only_what_may_be_in_one),
        cmocka_unit_test(no_control_character_reaches_a_terminal),
        cmocka_unit_test(the_bar_says_how_far_it_is),
    };
    return cmocka_run_group_tests_name("remote/sandbox", tests, NULL, NULL);
}
