/* loop/share: all who share a turn take no more of it than the share, nobody passes those who wait,
 * and whoever leaves is not called. Time is ours here. */

#include "loop/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SHARE_NS 1000u
#define SHARERS  4

static uint64_t clock_ns_now = 1000000000000u;

int clock_gettime(clockid_t id, struct timespec *ts) { /* NOLINT: libc's names are reserved */
    if (id != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, id, ts);
    ts->tv_sec = (time_t)(clock_ns_now / 1000000000u);
    ts->tv_nsec = (long)(clock_ns_now % 1000000000u);
    return 0;
}

static struct loop *loop;
static struct loop_share share;
static struct one {
    struct loop_sharer sharer;
    char name;
    unsigned cost_ns, again; /* how often it asks for more, in its turn */
    struct one *takes_out;
} ones[SHARERS];
static char order[64]; /* who had its turn; a stroke before each turn of the loop */
static struct timer stopper;

static void note(char c) {
    size_t n = strlen(order);
    assert_true(n + 1 < sizeof order);
    order[n] = c;
    order[n + 1] = '\0';
}

static void on_turn(struct loop_sharer *who) {
    struct one *o = who->arg;
    note(o->name);
    clock_ns_now += o->cost_ns;
    if (o->takes_out)
        loop_share_leave(&o->takes_out->sharer);
    if (o->again > 0) {
        o->again--;
        loop_share_wait(&share, who);
    }
}

static void on_stop(struct timer *t) {
    (void)t;
    loop_stop(loop);
}

static int setup(void **state) {
    struct err e;
    (void)state;
    assert_int_equal(loop_new(&loop, &e), 0);
    loop_share_init(&share, loop, SHARE_NS);
    for (int i = 0; i < SHARERS; i++) {
        ones[i] = (struct one){.name = (char)('a' + i), .cost_ns = 600};
        ones[i].sharer = (struct loop_sharer){.fn = on_turn, .arg = &ones[i]};
    }
    order[0] = '\0';
    stopper = (struct timer){.fn = on_stop};
    return 0;
}

static int teardown(void **state) {
    (void)state;
    loop_free(loop);
    return 0;
}

/* A turn, and those that the loop takes when it has stopped. */
static void run(void) {
    struct err e;
    loop_timer(loop, &stopper, 0);
    assert_int_equal(loop_run(loop, &e), 0);
}

static void wait_all(void) {
    for (int i = 0; i < SHARERS; i++)
        loop_share_wait(&share, &ones[i].sharer);
}

static uint64_t seen_turn;

static void note_turn(struct loop_sharer *who) {
    if (seen_turn != loop_turn(loop))
        note('/');
    seen_turn = loop_turn(loop);
    on_turn(who);
}

static void count_turns(void) {
    seen_turn = 0;
    for (int i = 0; i < SHARERS; i++)
        ones[i].sharer.fn = note_turn;
}

static void a_turn_takes_those_for_whom_there_is_time(void **state) {
    (void)state;
    count_turns();
    wait_all();
    run();
    assert_string_equal(order, "/ab/cd");
}

static void who_asks_twice_is_called_once(void **state) {
    (void)state;
    loop_share_wait(&share, &ones[0].sharer);
    loop_share_wait(&share, &ones[0].sharer);
    run();
    assert_string_equal(order, "a");
    assert_null(ones[0].sharer.waits_for);
}

static void who_asks_for_more_comes_after_those_who_wait(void **state) {
    (void)state;
    count_turns();
    ones[0].again = 2;
    wait_all();
    run();
    assert_string_equal(order, "/ab/cd/aa");
}

static void owners_take_turns_however_many_each_has(void **state) {
    (void)state;
    count_turns();
    ones[3].sharer.owner = 7;
    ones[0].again = ones[3].again = 1;
    wait_all();
    run();
    assert_string_equal(order, "/ad/bd/ca");
}

static void a_lane_ends_with_its_last(void **state) {
    (void)state;
    for (int i = 0; i < SHARERS; i++)
        ones[i].sharer.owner = (uint64_t)i / 2;
    wait_all();
    loop_share_leave(&ones[0].sharer);
    loop_share_leave(&ones[1].sharer);
    run();
    assert_string_equal(order, "cd");
    assert_null(share.first);
    assert_null(share.last);
}

static void who_leaves_is_not_called(void **state) {
    (void)state;
    wait_all();
    loop_share_leave(&ones[0].sharer); /* the first, */
    loop_share_leave(&ones[3].sharer); /* the last, */
    loop_share_leave(&ones[3].sharer); /* twice, */
    ones[1].takes_out = &ones[2];      /* and the last one left */
    run();
    assert_string_equal(order, "b");
    assert_null(share.first);
    assert_null(share.last);
    loop_share_wait(&share, &ones[2].sharer); /* and comes back */
    run();
    assert_string_equal(order, "bc");
}

static bool work(struct one *o) {
    if (!loop_share_begin(&share, &o->sharer))
        return false;
    clock_ns_now += o->cost_ns;
    loop_share_end(&share);
    return true;
}

static void work_is_done_at_once_until_the_share_is_spent(void **state) {
    (void)state;
    assert_true(work(&ones[0]));
    assert_true(work(&ones[1]));
    assert_true(loop_share_is_spent(&share));
    assert_false(work(&ones[2]));
    assert_ptr_equal(ones[2].sharer.waits_for, &share);
    run();
    assert_string_equal(order, "c");
    assert_false(loop_share_is_spent(&share));
}

static void nobody_passes_those_who_wait(void **state) {
    (void)state;
    loop_share_wait(&share, &ones[0].sharer);
    assert_false(work(&ones[1]));
    run();
    assert_string_equal(order, "ab");
}

static void work_within_work_counts_once(void **state) {
    (void)state;
    assert_true(loop_share_begin(&share, &ones[0].sharer));
    assert_true(work(&ones[1]));
    loop_share_end(&share);
    assert_int_equal(share.spent_ns, 600);
    loop_share_begin(&share, &ones[0].sharer);
    loop_share_wait(&share, &ones[2].sharer);
    assert_true(work(&ones[1])); /* it is part of what has begun */
    assert_true(loop_share_is_spent(&share));
    assert_false(work(&ones[3]));
    loop_share_end(&share);
    run();
    assert_string_equal(order, "cd");
}

static void what_others_do_for_it_counts(void **state) {
    (void)state;
    assert_true(loop_share_begin(&share, &ones[0].sharer));
    loop_share_charge(&share, SHARE_NS);
    assert_true(loop_share_is_spent(&share));
    loop_share_end(&share);
    assert_false(work(&ones[1]));
    run();
    assert_string_equal(order, "b");
}

/* The loop does not sleep meanwhile: nothing else would wake it up here. */
static unsigned calls;
static void on_many(struct loop_sharer *who) {
    clock_ns_now += 2 * SHARE_NS;
    if (++calls == 50)
        loop_stop(loop);
    else
        loop_share_wait(&share, who);
}

static void the_loop_goes_on_while_somebody_waits(void **state) {
    struct err e;
    (void)state;
    calls = 0;
    ones[0].sharer.fn = on_many;
    loop_share_wait(&share, &ones[0].sharer);
    assert_int_equal(loop_run(loop, &e), 0);
    assert_int_equal(calls, 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_turn_takes_those_for_whom_there_is_time, setup, teardown),
        cmocka_unit_test_setup_teardown(who_asks_twice_is_called_once, setup, teardown),
        cmocka_unit_test_setup_teardown(who_asks_for_more_comes_after_those_who_wait, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(owners_take_turns_however_many_each_has, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lane_ends_with_its_last, setup, teardown),
        cmocka_unit_test_setup_teardown(who_leaves_is_not_called, setup, teardown),
        cmocka_unit_test_setup_teardown(work_is_done_at_once_until_the_share_is_spent, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nobody_passes_those_who_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(work_within_work_counts_once, setup, teardown),
        cmocka_unit_test_setup_teardown(what_others_do_for_it_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(the_loop_goes_on_while_somebody_waits, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
