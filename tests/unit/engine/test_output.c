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
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SHARE_NS 1000000000u

/* A read takes no processor time here: what it is charged with is for the loop's turn. */
int clock_gettime(clockid_t id, struct timespec *ts) { /* NOLINT: libc's names are reserved */
    if (id != CLOCK_THREAD_CPUTIME_ID)
        return (int)syscall(SYS_clock_gettime, id, ts);
    *ts = (struct timespec){.tv_sec = 1};
    return 0;
}

static struct loop *loop;
static struct loop_share share;
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
    loop_share_init(&share, loop, SHARE_NS);
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    passed = (struct buf)BUF_INIT;
    out = (struct output){.fd = -1, .on_data = on_data};
    assert_int_equal(output_begin(&out, &share, ends[0], cap, &e), 0);
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
    output_hold(&out, HOLD_READER, true);
    write_text("later");
    run_once();
    assert_int_equal(out.total, 0);
    output_hold(&out, HOLD_READER, false);
    assert_int_equal(out.watch.events, EPOLLIN);
    output_drain(&out);
    assert_string_equal(out.kept.data, "later");
}

static void a_writer_that_leaves_while_we_hold_loses_nothing(void **state) {
    (void)state;
    begin(100);
    output_hold(&out, HOLD_READER, true);
    write_text("last words");
    fd_close(&ends[1]);
    run_once();
    assert_int_equal(out.watch.fd, -1); /* or the hang-up would wake us for ever */
    output_hold(&out, HOLD_READER, false);
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
    output_hold(&out, HOLD_READER, true);
    output_hold(&out, HOLD_READER, false);
    assert_int_equal(out.total, 0);
    assert_int_equal(out.watch.fd, -1);
}

static void two_that_hold_are_both_waited_for(void **state) {
    (void)state;
    begin(100);
    output_hold(&out, HOLD_READER, true);
    output_hold(&out, HOLD_REST, true);
    output_hold(&out, HOLD_READER, false);
    assert_int_equal(out.watch.events, 0);
    output_hold(&out, HOLD_REST, false);
    assert_int_equal(out.watch.events, EPOLLIN);
}

static void write_many(size_t n) {
    static char chunk[32768];
    memset(chunk, 'x', sizeof chunk);
    for (size_t some; n; n -= some) {
        some = n < sizeof chunk ? n : sizeof chunk;
        assert_int_equal(write(ends[1], chunk, some), some);
        output_drain(&out);
    }
}

static void beyond_the_room_of_all_only_a_little_is_kept(void **state) {
    (void)state;
    struct kept account = {.bytes = 1000, .most = 1000};
    begin(1 << 20);
    out.account = &account;
    write_many(KEPT_LEAST);
    assert_false(output_truncated(&out));
    write_many(10);
    assert_int_equal(out.kept.len, KEPT_LEAST);
    assert_int_equal(passed.len, KEPT_LEAST);
    assert_int_equal(account.bytes, 1000 + KEPT_LEAST);
    assert_true(output_truncated(&out) && output_starved(&out));
    account.most = 1 << 20; /* there is room again: but a hole in it would not show */
    write_many(10);
    assert_int_equal(out.kept.len, KEPT_LEAST);
    assert_int_equal(out.total, KEPT_LEAST + 20);
    output_reset(&out, 1 << 20);
    assert_int_equal(account.bytes, 1000);
    assert_false(output_truncated(&out));
    write_text("again");
    output_drain(&out);
    assert_int_equal(account.bytes, 1005);
    output_uncount(&out);
    assert_int_equal(account.bytes, 1000);
}

static void what_is_cleared_counts_no_more(void **state) {
    (void)state;
    struct kept account = {.most = 100};
    begin(1000);
    out.account = &account;
    write_text("old and new");
    output_drain(&out);
    output_clear(&out, 3);
    assert_string_equal(out.kept.data, "new");
    assert_int_equal(account.bytes, 3);
    struct buf taken;
    output_take(&out, 1000, &taken);
    assert_string_equal(taken.data, "new");
    assert_int_equal(account.bytes, 0);
    buf_done(&taken);
    out.account = NULL;
}

static unsigned costs;
static void on_cost(struct output *o, uint64_t cpu_ns) {
    (void)o;
    assert_true(cpu_ns > 0);
    costs++;
}

static void who_goes_on_printing_pays_for_it(void **state) {
    (void)state;
    begin(4);
    out.on_cost = on_cost;
    costs = 0;
    for (int i = 0; i < 20; i++) {
        write_text("x");
        run_once();
    }
    assert_int_equal(out.total, 20);
    assert_int_equal(costs, 4); /* the first reads are free */
}

static void when_the_share_is_spent_it_is_read_in_a_later_turn(void **state) {
    (void)state;
    begin(100);
    share.turn_ns = 0;
    write_text("x");
    run_once();
    assert_int_equal(out.total, 0);
    assert_int_equal(out.watch.events, 0); /* nobody asks for it meanwhile */
    share.turn_ns = SHARE_NS;
    run_once();
    assert_int_equal(out.total, 1);
    assert_int_equal(out.watch.events, EPOLLIN);
}

static void who_is_held_loses_its_turn(void **state) {
    (void)state;
    begin(100);
    share.turn_ns = 0;
    write_text("x");
    run_once();
    output_hold(&out, HOLD_REST, true);
    share.turn_ns = SHARE_NS;
    run_once();
    assert_int_equal(out.total, 0);
    output_hold(&out, HOLD_REST, false);
    run_once();
    assert_int_equal(out.total, 1);
}

static void the_end_does_not_wait_for_a_turn(void **state) {
    (void)state;
    begin(100);
    share.turn_ns = 0;
    write_text("x");
    run_once();
    output_drain(&out);
    assert_int_equal(out.total, 1);
    output_end(&out);
    assert_null(share.first);
}

static void hold_it(struct watch *w, uint32_t events) {
    (void)events;
    loop_unwatch(loop, w);
    output_hold(&out, HOLD_REST, true);
}

static void what_was_ready_before_it_was_held_is_not_read(void **state) {
    struct watch first = {.fd = -1, .fn = hold_it};
    struct err e;
    int other[2];
    (void)state;
    begin(100);
    assert_int_equal(pipe2(other, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(loop_watch(loop, &first, other[0], EPOLLIN, &e), 0);
    assert_int_equal(write(other[1], "x", 1), 1); /* told of first */
    write_text("x");
    run_once();
    assert_int_equal(out.total, 0);
    fd_close_all(other, 2);
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
        cmocka_unit_test_teardown(two_that_hold_are_both_waited_for, teardown),
        cmocka_unit_test_teardown(beyond_the_room_of_all_only_a_little_is_kept, teardown),
        cmocka_unit_test_teardown(what_is_cleared_counts_no_more, teardown),
        cmocka_unit_test_teardown(who_goes_on_printing_pays_for_it, teardown),
        cmocka_unit_test_teardown(when_the_share_is_spent_it_is_read_in_a_later_turn, teardown),
        cmocka_unit_test_teardown(who_is_held_loses_its_turn, teardown),
        cmocka_unit_test_teardown(the_end_does_not_wait_for_a_turn, teardown),
        cmocka_unit_test_teardown(what_was_ready_before_it_was_held_is_not_read, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
