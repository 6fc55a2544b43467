/* engine/output: what a program writes is passed on and kept up to a cap; the rest is read and
 * thrown away. */

#include "base/fd.h"
#include "engine/core/output.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

static struct loop *loop;
static struct output out;
static int ends[2];
static struct buf passed;
static struct timer stopper;

static void on_data(struct output *o, const void *data, size_t len) {
    assert_ptr_equal(o, &out);
    buf_add(&passed, data, len);
}

static void on_stop(struct timer *t) {
    (void)t;
    loop_stop(loop);
}

static void begin(uint64_t cap) {
    struct err e;
    assert_int_equal(loop_new(&loop, &e), 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    passed = (struct buf)BUF_INIT;
    out = (struct output){.fd = -1, .on_data = on_data};
    assert_int_equal(output_begin(&out, loop, ends[0], cap, &e), 0);
    stopper = (struct timer){.fn = on_stop};
}

static int teardown(void **state) {
    (void)state;
    output_free(&out);
    buf_done(&passed);
    fd_close_all(ends, 2);
    loop_free(loop);
    return 0;
}

static void write_text(const char *text) {
    assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
}

static void run_once(void) {
    struct err e;
    loop_timer(loop, &stopper, 0);
    assert_int_equal(loop_run(loop, &e), 0);
}

static void what_is_written_is_passed_on_and_kept(void **state) {
    (void)state;
    begin(100);
    write_text("hello");
    run_once();
    assert_string_equal(passed.data, "hello");
    assert_string_equal(out.kept.data, "hello");
    assert_int_equal(out.total, 5);
    assert_false(output_truncated(&out));
}

static void beyond_the_cap_it_is_read_and_thrown_away(void **state) {
    (void)state;
    begin(7);
    write_text("hello");
    output_drain(&out);
    write_text(" world");
    output_drain(&out);
    write_text(" and more");
    output_drain(&out);
    assert_string_equal(passed.data, "hello w");
    assert_string_equal(out.kept.data, "hello w");
    assert_int_equal(out.total, 20);
    assert_true(output_truncated(&out));
}

static void exactly_the_cap_is_not_truncated(void **state) {
    (void)state;
    begin(5);
    write_text("hello");
    output_drain(&out);
    assert_false(output_truncated(&out));
    write_text("!");
    output_drain(&out);
    assert_true(output_truncated(&out));
}

static void a_drain_takes_all_that_is_there_at_that_moment(void **state) {
    (void)state;
    static char chunk[60000]; /* more than one read */
    memset(chunk, 'x', sizeof chunk);
    begin(1 << 20);
    assert_int_equal(write(ends[1], chunk, sizeof chunk), sizeof chunk);
    output_drain(&out);
    assert_int_equal(out.kept.len, sizeof chunk);
    output_drain(&out); /* nothing more: it does not wait */
    assert_int_equal(out.kept.len, sizeof chunk);
}

static void while_held_nothing_is_read(void **state) {
    (void)state;
    begin(100);
    output_hold(&out, true);
    write_text("later");
    run_once();
    assert_int_equal(out.total, 0);
    output_hold(&out, false);
    assert_int_equal(out.watch.events, EPOLLIN);
    output_drain(&out);
    assert_string_equal(out.kept.data, "later");
}

static void a_writer_that_leaves_while_we_hold_loses_nothing(void **state) {
    (void)state;
    begin(100);
    output_hold(&out, true);
    write_text("last words");
    fd_close(&ends[1]);
    run_once();
    assert_int_equal(out.watch.fd, -1); /* or the hang-up would wake us for ever */
    output_hold(&out, false);
    assert_true(out.watch.fd >= 0);
    output_drain(&out);
    assert_string_equal(out.kept.data, "last words");
}

static void the_end_of_file_ends_the_watch(void **state) {
    (void)state;
    begin(100);
    fd_close(&ends[1]);
    run_once();
    assert_int_equal(out.watch.fd, -1);
    output_drain(&out);
    assert_int_equal(out.total, 0);
}

static void after_the_end_nothing_is_read(void **state) {
    (void)state;
    begin(100);
    output_end(&out);
    write_text("too late");
    output_drain(&out);
    output_hold(&out, true);
    output_hold(&out, false);
    assert_int_equal(out.total, 0);
    assert_int_equal(out.watch.fd, -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_is_written_is_passed_on_and_kept, teardown),
        cmocka_unit_test_teardown(beyond_the_cap_it_is_read_and_thrown_away, teardown),
        cmocka_unit_test_teardown(exactly_the_cap_is_not_truncated, teardown),
        cmocka_unit_test_teardown(a_drain_takes_all_that_is_there_at_that_moment, teardown),
        cmocka_unit_test_teardown(while_held_nothing_is_read, teardown),
        cmocka_unit_test_teardown(a_writer_that_leaves_while_we_hold_loses_nothing, teardown),
        cmocka_unit_test_teardown(the_end_of_file_ends_the_watch, teardown),
        cmocka_unit_test_teardown(after_the_end_nothing_is_read, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
