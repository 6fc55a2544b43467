/* api/jobs/records: those who follow an execution. However many they are and however long it takes
 * to tell each, they share a millisecond of a turn of the loop. What is forgotten is freed in
 * many. Time is ours here. */

#include "api/jobs/records.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define FOLLOWERS 10
#define TELL_NS   400000u /* it takes so long to tell one of one event, */
#define IN_TURN   3       /* so that as many are begun within a millisecond */

static uint64_t clock_ns_now = 1000000000000u;

int clock_gettime(clockid_t id, struct timespec *ts) { /* NOLINT: libc's names are reserved */
    if (id != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, id, ts);
    ts->tv_sec = (time_t)(clock_ns_now / 1000000000u);
    ts->tv_nsec = (long)(clock_ns_now % 1000000000u);
    return 0;
}

static struct loop *loop;
static struct records *records;
static struct record *record;
static struct told {
    struct follower follower;
    char heard[64]; /* the numbers of events, and a dot for the end */
} all[FOLLOWERS];
static unsigned calls, in_turn; /* in all; in the turn of the loop at hand */
static unsigned most_in_turn;
static uint64_t turn;

static void on_event(struct follower *f, uint64_t number, const char *type, const char *json,
                     size_t len) {
    struct told *t = f->arg;
    size_t there = strlen(t->heard);
    (void)json, (void)len;
    clock_ns_now += TELL_NS;
    if (turn != loop_turn(loop))
        in_turn = 0;
    turn = loop_turn(loop);
    calls++;
    if (!f->is_first && ++in_turn > most_in_turn)
        most_in_turn = in_turn;
    snprintf(t->heard + there, sizeof t->heard - there, type ? "%d" : ".", (int)number);
}

static int open_records(void **state) {
    struct err e;
    (void)state;
    records = loop_new(&loop, &e) == 0 ? records_new(loop, 1 << 20, 1000000) : NULL;
    return records ? 0 : -1;
}

static int setup(void **state) {
    (void)state;
    record = record_new(records, "exe_1", "a");
    for (unsigned i = 0; i < FOLLOWERS; i++) {
        all[i] = (struct told){.follower = {.fn = on_event, .arg = &all[i]}};
        record_follow(record, &all[i].follower);
    }
    calls = in_turn = most_in_turn = 0;
    return 0;
}

static void on_turn(struct timer *t) {
    (void)t;
    loop_stop(loop);
}

/* Until nobody is told any more. */
static void go_on(void) {
    struct err e;
    for (unsigned before = calls + 1; calls != before;) {
        struct timer stop = {.fn = on_turn};
        before = calls;
        loop_timer(loop, &stop, 0);
        assert_int_equal(loop_run(loop, &e), 0);
    }
}

static int teardown(void **state) {
    (void)state;
    record_end(record, "{}");
    go_on();
    return 0;
}

static void assert_all_heard(const char *what) {
    for (unsigned i = 0; i < FOLLOWERS; i++)
        assert_string_equal(all[i].heard, what);
}

static void many_share_a_turn_and_all_are_told(void **state) {
    (void)state;
    record_event(record, "stdout", "{}", 2);
    assert_int_equal(calls, IN_TURN);
    go_on();
    assert_all_heard("1");
    assert_int_equal(most_in_turn, IN_TURN);
}

static void who_is_behind_hears_all_in_its_order(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++)
        record_event(record, "stdout", "{}", 2);
    assert_int_equal(calls, IN_TURN); /* of the first, and then nobody of any */
    record_end(record, "{}");
    assert_int_equal(calls, IN_TURN);
    go_on();
    assert_all_heard("123.");
    assert_int_equal(most_in_turn, 4); /* one that is told of all four */
}

static void who_can_hold_the_program_is_told_at_once(void **state) {
    (void)state;
    all[0].follower.is_first = true; /* it came first, and so is told last */
    record_event(record, "stdout", "{}", 2);
    assert_int_equal(calls, IN_TURN + 1);
    assert_string_equal(all[0].heard, "1");
    record_event(record, "stdout", "{}", 2);
    assert_string_equal(all[0].heard, "12");
}

/* A sanitizer's allocator does not say what is in use. */
static size_t used(void) {
    return mallinfo2().uordblks;
}

static struct looks {
    size_t last, most; /* in use; less at most, from one turn to the next */
    int left;
} looks;

static void on_look(struct timer *t) {
    size_t now = used();
    if (looks.last > now && looks.last - now > looks.most)
        looks.most = looks.last - now;
    looks.last = now;
    if (--looks.left == 0)
        loop_stop(loop);
    else
        loop_timer(loop, t, ++clock_ns_now); /* in the next turn */
}

/* In the turn in which most was freed. */
static size_t most_freed_in_a_turn(void) {
    struct err e;
    struct timer look = {.fn = on_look};
    looks = (struct looks){.last = used(), .left = 20};
    loop_timer_in_ms(loop, &look, 0);
    assert_int_equal(loop_run(loop, &e), 0);
    return looks.most;
}

static void what_is_forgotten_is_freed_over_many_turns(void **state) {
    (void)state;
    size_t before = used();
    struct record *many = record_new(records, "exe_2", "a");
    for (int i = 0; i < 20000; i++)
        record_event(many, "stdout", "{}", 2);
    size_t all_of_it = used() - before;
    record_end(many, "{}");
    if (all_of_it == 0 || before == 0)
        skip();
    clock_ns_now += 2000000u * 1000000ull; /* it is old by now */
    assert_null(records_find(records, "a", "exe_2"));
    assert_true(used() > before + all_of_it / 2);
    assert_true(most_freed_in_a_turn() < all_of_it / 2);
    assert_true(used() < before + all_of_it / 20);
}

static void who_leaves_while_behind_is_not_told(void **state) {
    (void)state;
    record_event(record, "stdout", "{}", 2);
    for (unsigned i = 0; i < FOLLOWERS; i++)
        record_unfollow(&all[i].follower);
    go_on();
    assert_int_equal(calls, IN_TURN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_share_a_turn_and_all_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(who_is_behind_hears_all_in_its_order, setup, teardown),
        cmocka_unit_test_setup_teardown(who_can_hold_the_program_is_told_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(who_leaves_while_behind_is_not_told, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_forgotten_is_freed_over_many_turns, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, open_records, NULL);
}
