/* cli/run_options: the command line of `cloche run`. */

#include "cli/run_options.h"

#include "config/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ARGS_MAX 40

static int parse(const char *const *args, struct options *o, struct run_options *ret,
                 struct err *e) {
    static char *argv[ARGS_MAX + 2];
    int argc = 0;
    argv[argc++] = (char *)"run";
    while (args[argc - 1])
        argv[argc] = (char *)args[argc - 1], argc++;
    argv[argc] = NULL;
    return run_options_parse(argc, argv, o, ret, e);
}

static void everything_at_once(void **state) {
    (void)state;
    static const char *const args[] = {"--profile",
                                       "data",
                                       "--timeout",
                                       "1.5",
                                       "--memory=100",
                                       "--cpu",
                                       "3",
                                       "--cpus",
                                       ".5",
                                       "--pids",
                                       "9",
                                       "--disk",
                                       "7",
                                       "--output",
                                       "1234",
                                       "--file",
                                       "a:b",
                                       "--file",
                                       "c",
                                       "--env",
                                       "K=V=W",
                                       "--stdin",
                                       "--out",
                                       "d",
                                       "x.py",
                                       "--json",
                                       "--open-files",
                                       "33",
                                       "-v",
                                       "--",
                                       "--json",
                                       "-c",
                                       "",
                                       NULL};
    static struct run_options r;
    struct err e;
    AUTO_OPTIONS o = options_new();
    assert_int_equal(parse(args, o, &r, &e), 0);
    assert_string_equal(r.msg.profile, "data");
    assert_int_equal(r.msg.limits.timeout_ms, 1500);
    assert_int_equal(r.msg.limits.memory_mb, 100);
    assert_int_equal(r.msg.limits.cpu_seconds, 3);
    assert_int_equal(r.msg.limits.cpus_percent, 50);
    assert_int_equal(r.msg.limits.pids, 9);
    assert_int_equal(r.msg.limits.disk_mb, 7);
    assert_int_equal(r.msg.limits.output_bytes, 1234);
    assert_int_equal(r.msg.limits.open_files, 33);
    assert_int_equal(r.msg.flags, RUN_STDIN);
    assert_int_equal(r.ninputs, 2);
    assert_string_equal(r.inputs[1], "c");
    assert_string_equal(r.msg.env[0], "K=V=W");
    assert_string_equal(r.file, "x.py");
    assert_null(r.code);
    assert_string_equal(r.out, "d");
    assert_true(r.json && r.verbose && !r.socket_named);
    assert_int_equal(r.msg.nargs, 3);
    assert_string_equal(r.msg.args[0], "--json");
    assert_string_equal(r.msg.args[2], "");
    run_options_done(&r);
}

static void limits_that_are_not_given_are_left_to_the_engine(void **state) {
    (void)state;
    static struct run_options r;
    struct err e;
    AUTO_OPTIONS o = options_new();
    assert_int_equal(parse((const char *const[]){"-c", "", NULL}, o, &r, &e), 0);
    assert_string_equal(r.code, "");
    assert_string_equal(r.msg.profile, "auto");
    assert_int_equal(r.msg.limits.timeout_ms + r.msg.limits.memory_mb + r.msg.limits.cpus_percent,
                     0);
    run_options_done(&r);
}

static const struct refused_case {
    const char *behaviour;
    const char *args[6];
    const char *says;
} refused_cases[] = {
    {"nothing to run", {0}, "no program"},
    {"two files", {"a", "b"}, "\"b\" is one program too many"},
    {"code and a file", {"-c", "1", "b"}, "\"b\""},
    {"unknown option", {"--nope", "a"}, "\"--nope\" is no option"},
    {"unknown short option", {"-vz", "a"}, "\"-z\" is no option"},
    {"unknown option after the program", {"a", "--nope"}, "\"--nope\""},
    {"value missing", {"a", "--timeout"}, "\"--timeout\" needs a value"},
    {"code missing", {"-c"}, "needs a value"},
    {"zero time", {"--timeout", "0", "a"}, "--timeout is \"0\""},
    {"less than a millisecond", {"--timeout", "0.0001", "a"}, "--timeout is \"0.0001\""},
    {"negative time", {"--timeout", "-1", "a"}, "--timeout is \"-1\""},
    {"exponent", {"--timeout", "1e3", "a"}, "--timeout"},
    {"not a number", {"--timeout", "nan", "a"}, "--timeout"},
    {"too much for 32 bits", {"--memory", "4294967297", "a"}, "--memory"},
    {"memory with a unit", {"--memory", "256M", "a"}, "--memory is \"256M\""},
    {"no processors", {"--cpus", "0", "a"}, "--cpus"},
    {"less than a hundredth of one", {"--cpus", "0.001", "a"}, "--cpus"},
    {"empty value", {"--pids", "", "a"}, "--pids is \"\""},
    {"variable without a value", {"--env", "K", "a"}, "--env is \"K\""},
    {"variable without a name", {"--env", "=V", "a"}, "--env"},
    {"empty profile", {"--profile", "", "a"}, "profile"},
    {"program and input on stdin", {"--stdin", "-"}, "stdin"},
    {"control characters are shown", {"--memory", "1\n2", "a"}, "\\x0a"},
};

static void mistakes_are_named(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refused_cases / sizeof refused_cases[0]; i++) {
        const struct refused_case *t = &refused_cases[i];
        static struct run_options r;
        struct err e = {0};
        AUTO_OPTIONS o = options_new();
        if (parse(t->args, o, &r, &e) == 0)
            fail_msg("not refused: %s", t->behaviour);
        if (!strstr(e.text, t->says) || !e.kind[0])
            fail_msg("%s: (%s) %s", t->behaviour, e.kind, e.text);
        run_options_done(&r);
    }
}

static void json_is_known_even_when_something_before_is_wrong(void **state) {
    (void)state;
    static struct run_options r;
    struct err e;
    AUTO_OPTIONS o = options_new();
    assert_int_equal(parse((const char *const[]){"--pids", "x", "--json", NULL}, o, &r, &e), -1);
    assert_true(r.json);
    run_options_done(&r);
    assert_int_equal(parse((const char *const[]){"--pids", "x", "--", "--json", NULL}, o, &r, &e),
                     -1);
    assert_false(r.json);
    run_options_done(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_at_once),
        cmocka_unit_test(limits_that_are_not_given_are_left_to_the_engine),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(json_is_known_even_when_something_before_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
