/* wire/run: a program and its end survive the journey; forged ones do not. */

#include "base/fd.h"
#include "wire/fields.h"
#include "wire/run.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

static struct wire_out out;
static struct wire_in in;
static struct run_msg run, got_run;
static struct done_msg done, got_done;

static int setup(void **state) {
    (void)state;
    memset(&out, 0, sizeof out);
    memset(&in, 0, sizeof in);
    run = (struct run_msg){
        .profile = "base", .code = (const uint8_t *)"x", .code_len = 1, .code_fd = -1};
    done = (struct done_msg){.name = "", .value = "", .result_fd = -1};
    return 0;
}

/* What a peer gets to see of `out`, cut to len bytes. */
static int deliver(size_t len, struct err *e) {
    memcpy(in.data, out.data, len);
    return wire_open(&in, len, e);
}

static void a_program_arrives_whole(void **state) {
    (void)state;
    struct err e;
    run = (struct run_msg){
        .flags = RUN_LAST_LINE | RUN_FILES,
        .profile = "data",
        .limits = {1, 2, 3, 4, 5, 6, 7, UINT64_MAX},
        .nargs = 2,
        .args = {"", "b c"},
        .nenv = 1,
        .env = {"K=V"},
        .code = (const uint8_t *)"print('\0')",
        .code_len = 10,
        .code_fd = -1,
    };
    run_put(&out, WIRE_C_RUN, &run);
    assert_false(out.bad);
    assert_int_equal(deliver(out.len, &e), 0);
    assert_int_equal(in.type, WIRE_C_RUN);
    assert_int_equal(run_get(&in, &got_run, &e), 0);
    assert_int_equal(got_run.flags, run.flags);
    assert_string_equal(got_run.profile, "data");
    assert_memory_equal(&got_run.limits, &run.limits, sizeof run.limits);
    assert_int_equal(got_run.nargs, 2);
    assert_string_equal(got_run.args[0], "");
    assert_string_equal(got_run.args[1], "b c");
    assert_int_equal(got_run.nenv, 1);
    assert_string_equal(got_run.env[0], "K=V");
    assert_int_equal(got_run.code_len, 10);
    assert_memory_equal(got_run.code, run.code, 10);
    assert_int_equal(got_run.code_fd, -1);
}

/* A payload as another version would send it: that many limits, each of its place and 7, and the
 * last one of `last`. */
static struct limits limits_of_other_version(uint32_t n, uint64_t last) {
    struct err e;
    wire_begin(&out, WIRE_I_LIMITS);
    wire_put_u32(&out, n);
    for (uint32_t i = 0; i < n; i++)
        wire_put_u64(&out, i + 1 < n ? 7 + i : last);
    assert_int_equal(deliver(out.len, &e), 0);
    return limits_get(&in);
}

static void limits_of_another_version_are_understood(void **state) {
    (void)state;
    struct limits few = limits_of_other_version(2, 8);
    assert_false(in.bad);
    struct limits more = limits_of_other_version(LIMITS_ + 1, 0);
    assert_false(in.bad);
    for (size_t i = 0; i < LIMITS_; i++) {
        assert_int_equal(limits_value(&few, i), i < 2 ? 7 + i : 0);
        assert_int_equal(limits_value(&more, i), 7 + i);
    }
    (void)limits_of_other_version(LIMITS_ + 1, 1); /* which nobody here would enforce */
    assert_true(in.bad);
}

static void a_number_that_does_not_fit_is_the_largest(void **state) {
    (void)state;
    struct limits l = {0};
    for (size_t i = 0; i < LIMITS_; i++) {
        limits_set(&l, i, UINT64_MAX);
        assert_true(limits_value(&l, i) == limits_most(i));
    }
    assert_int_equal(l.memory_mb, UINT32_MAX);
    assert_true(l.output_bytes == UINT64_MAX);
}

static void code_in_a_descriptor_is_handed_over(void **state) {
    (void)state;
    struct err e;
    int ends[2];
    assert_int_equal(wire_pair(ends, &e), 0);
    AUTO_FD a = ends[0], b = ends[1], file = memfd_create("t", MFD_CLOEXEC);
    run.flags = RUN_CODE_FD;
    run.code_fd = file;
    run_put(&out, WIRE_K_RUN, &run);
    assert_int_equal(wire_send(a, &out, &e), WIRE_SENT);
    assert_int_equal(wire_recv(b, &in, &e), WIRE_GOT);
    assert_int_equal(run_get(&in, &got_run, &e), 0);
    AUTO_FD code = got_run.code_fd;
    wire_in_done(&in);
    assert_true(fcntl(code, F_GETFD) >= 0);
    assert_int_equal(got_run.code_len, 0);
}

static void a_promised_descriptor_that_is_missing_is_refused(void **state) {
    (void)state;
    struct err e;
    run.flags = RUN_CODE_FD;
    run.code_fd = 0;
    run_put(&out, WIRE_C_RUN, &run);
    assert_int_equal(deliver(out.len, &e), 0);
    assert_int_equal(run_get(&in, &got_run, &e), -1);
    assert_string_equal(e.text, "C_RUN: no code");
    assert_int_equal(got_run.code_fd, -1);
}

static void a_program_cut_anywhere_is_refused(void **state) {
    (void)state;
    run.nargs = run.nenv = 1;
    run.args[0] = "a";
    run.env[0] = "K=V";
    run_put(&out, WIRE_C_RUN, &run);
    for (size_t len = 4; len < out.len; len++) {
        struct err e;
        assert_int_equal(deliver(len, &e), 0);
        if (run_get(&in, &got_run, &e) == 0)
            fail_msg("%zu of %zu bytes were taken", len, out.len);
    }
}

static void the_end_of_a_program_arrives_whole(void **state) {
    (void)state;
    struct err e;
    done = (struct done_msg){
        .how = DONE_EXCEPTION,
        .exit_code = 255,
        .cpu_us = 1234567,
        .name = "ValueError",
        .value = "no: 'x'",
        .nlines = 2,
        .lines = {"Traceback (most recent call last):", "ValueError: no: 'x'"},
        .result = "[1]",
        .result_len = 3,
        .result_fd = -1,
    };
    done_put(&out, &done);
    assert_int_equal(deliver(out.len, &e), 0);
    assert_int_equal(done_get(&in, &got_done, &e), 0);
    assert_int_equal(got_done.how, DONE_EXCEPTION);
    assert_int_equal(got_done.exit_code, 255);
    assert_int_equal(got_done.cpu_us, 1234567);
    assert_string_equal(got_done.name, "ValueError");
    assert_string_equal(got_done.value, "no: 'x'");
    assert_int_equal(got_done.nlines, 2);
    assert_string_equal(got_done.lines[1], "ValueError: no: 'x'");
    assert_int_equal(got_done.result_len, 3);
    assert_memory_equal(got_done.result, "[1]", 3);
    assert_int_equal(got_done.result_fd, -1);
}

static void a_long_result_is_handed_over(void **state) {
    (void)state;
    struct err e;
    int ends[2];
    assert_int_equal(wire_pair(ends, &e), 0);
    AUTO_FD a = ends[0], b = ends[1], file = memfd_create("t", MFD_CLOEXEC);
    done.result = "not sent";
    done.result_len = 8;
    done.result_fd = file;
    done_put(&out, &done);
    assert_int_equal(wire_send(a, &out, &e), WIRE_SENT);
    assert_int_equal(wire_recv(b, &in, &e), WIRE_GOT);
    assert_int_equal(done_get(&in, &got_done, &e), 0);
    AUTO_FD result = got_done.result_fd;
    wire_in_done(&in);
    assert_true(fcntl(result, F_GETFD) >= 0);
    assert_int_equal(got_done.result_len, 0);
}

static void an_end_cut_anywhere_is_refused(void **state) {
    (void)state;
    done.nlines = 2;
    done.lines[0] = done.lines[1] = "line";
    done_put(&out, &done);
    for (size_t len = 4; len < out.len; len++) {
        struct err e;
        assert_int_equal(deliver(len, &e), 0);
        if (done_get(&in, &got_done, &e) == 0)
            fail_msg("%zu of %zu bytes were taken", len, out.len);
    }
}

/* A K_DONE of these numbers, with empty strings. */
static int forged_done(uint32_t how, uint32_t exit_code, uint32_t nlines, uint32_t real_lines) {
    wire_begin(&out, WIRE_K_DONE);
    wire_put_u32(&out, how);
    wire_put_u32(&out, exit_code);
    wire_put_u64(&out, 0); /* cpu_us */
    wire_put_str(&out, "");
    wire_put_str(&out, "");
    wire_put_u32(&out, nlines);
    for (uint32_t i = 0; i < real_lines; i++)
        wire_put_str(&out, "");
    wire_put_bytes(&out, "", 0);
    assert_false(out.bad);
    struct err e;
    assert_int_equal(deliver(out.len, &e), 0);
    return done_get(&in, &got_done, &e);
}

static void impossible_ends_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint32_t how, exit_code, nlines, real_lines;
        int want;
    } cases[] = {
        {"a plain one", DONE_RETURNED, 0, 0, 0, 0},
        {"the last outcome there is", DONE_REFUSED, 255, 0, 0, 0},
        {"as many lines as there may be", DONE_RETURNED, 0, DONE_MAX_LINES, DONE_MAX_LINES, 0},
        {"unknown outcome", DONE_REFUSED + 1, 0, 0, 0, -1},
        {"largest outcome", UINT32_MAX, 0, 0, 0, -1},
        {"exit status that no shell has", DONE_EXIT, 256, 0, 0, -1},
        {"one line too many", DONE_RETURNED, 0, DONE_MAX_LINES + 1, DONE_MAX_LINES + 1, -1},
        {"count that wraps", DONE_RETURNED, 0, UINT32_MAX, 1, -1},
        {"fewer lines than it says", DONE_RETURNED, 0, 3, 2, -1},
        {"more lines than it says", DONE_RETURNED, 0, 2, 3, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (forged_done(cases[i].how, cases[i].exit_code, cases[i].nlines, cases[i].real_lines) !=
            cases[i].want)
            fail_msg("%s", cases[i].name);
}

static void too_many_arguments_are_refused(void **state) {
    (void)state;
    struct err e;
    for (uint32_t i = 0; i < RUN_MAX_ARGS; i++)
        run.args[i] = "x";
    run.nargs = RUN_MAX_ARGS;
    run_put(&out, WIRE_C_RUN, &run);
    assert_int_equal(deliver(out.len, &e), 0);
    assert_int_equal(run_get(&in, &got_run, &e), 0);
    assert_int_equal(got_run.nargs, RUN_MAX_ARGS);
    /* The count follows the header, flags, profile and limits. */
    size_t at = 4 + 4 + (4 + 5) + (4 + LIMITS_ * 8);
    uint32_t n;
    memcpy(&n, in.data + at, sizeof n);
    assert_int_equal(n, RUN_MAX_ARGS);
    n++;
    memcpy(in.data + at, &n, sizeof n);
    assert_int_equal(wire_open(&in, out.len, &e), 0);
    assert_int_equal(run_get(&in, &got_run, &e), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_program_arrives_whole, setup),
        cmocka_unit_test(limits_of_another_version_are_understood),
        cmocka_unit_test(a_number_that_does_not_fit_is_the_largest),
        cmocka_unit_test_setup(code_in_a_descriptor_is_handed_over, setup),
        cmocka_unit_test_setup(a_promised_descriptor_that_is_missing_is_refused, setup),
        cmocka_unit_test_setup(a_program_cut_anywhere_is_refused, setup),
        cmocka_unit_test_setup(the_end_of_a_program_arrives_whole, setup),
        cmocka_unit_test_setup(a_long_result_is_handed_over, setup),
        cmocka_unit_test_setup(an_end_cut_anywhere_is_refused, setup),
        cmocka_unit_test_setup(impossible_ends_are_refused, setup),
        cmocka_unit_test_setup(too_many_arguments_are_refused, setup),
    };
    return cmocka_run_group_tests_name("wire/run", tests, NULL, NULL);
}
