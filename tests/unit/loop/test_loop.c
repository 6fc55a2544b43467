/* loop: no event reaches a watch that was taken out, timers come in order, deferred calls last. */

#include "base/clock.h"
#include "base/fd.h"
#include "loop/loop.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#define SOURCES 4

static struct loop *loop;
static char order[256]; /* who was called, a letter each */
static size_t norder;

struct source {
    int fd;
    struct watch watch;
    char name;
    struct source *takes_out; /* NULL: nobody */
};
static struct source sources[SOURCES];
static struct timer timers[64], stopper;
static struct deferred later[3];

static void note(char c) {
    assert_true(norder < sizeof order - 1);
    order[norder++] = c;
    order[norder] = '\0';
}

static void on_source(struct watch *w, uint32_t events) {
    struct source *s = w->arg;
    uint64_t n;
    assert_true(events & EPOLLIN);
    assert_int_equal(read(s->fd, &n, sizeof n), sizeof n);
    note(s->name);
    for (int i = 0; s->takes_out && i < SOURCES; i++) {
        if (&sources[i] != s)
            loop_unwatch(loop, &sources[i].watch);
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
    memset(timers, 0, sizeof timers);
    memset(later, 0, sizeof later);
    norder = 0;
    order[0] = '\0';
    for (int i = 0; i < SOURCES; i++) {
        struct source *s = &sources[i];
        *s = (struct source){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .name = (char)('a' + i)};
        s->watch = (struct watch){.fd = -1, .fn = on_source, .arg = s};
        assert_int_equal(loop_watch(loop, &s->watch, s->fd, EPOLLIN, &e), 0);
    }
    stopper = (struct timer){.fn = on_stop};
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (int i = 0; i < SOURCES; i++) {
        loop_unwatch(loop, &sources[i].watch);
        fd_close(&sources[i].fd);
    }
    loop_free(loop);
    return 0;
}

static void fire(struct source *s) {
    uint64_t one = 1;
    assert_int_equal(write(s->fd, &one, sizeof one), sizeof one);
}

/* Runs what is ready now. */
static void run_once(void) {
    struct err e;
    loop_timer(loop, &stopper, 0);
    assert_int_equal(loop_run(loop, &e), 0);
}

static void every_ready_source_is_told(void **state) {
    (void)state;
    for (int i = 0; i < SOURCES; i++)
        fire(&sources[i]);
    run_once();
    assert_int_equal(norder, SOURCES);
}

static void a_watch_taken_out_within_a_batch_hears_nothing(void **state) {
    (void)state;
    for (int i = 0; i < SOURCES; i++) {
        sources[i].takes_out = sources; /* whoever comes first takes all others out */
        fire(&sources[i]);
    }
    run_once();
    assert_int_equal(norder, 1);
}

static void on_own_end(struct watch *w, uint32_t events) {
    (void)events;
    note('!');
    loop_unwatch(loop, w);
}

static void a_watch_may_take_itself_out(void **state) {
    (void)state;
    sources[0].watch.fn = on_own_end;
    fire(&sources[0]);
    fire(&sources[1]);
    run_once();
    assert_int_equal(norder, 2);
    assert_int_equal(sources[0].watch.fd, -1);
    loop_unwatch(loop, &sources[0].watch); /* twice does nothing */
}

static void a_masked_watch_is_silent(void **state) {
    struct err e;
    (void)state;
    assert_int_equal(loop_rewatch(loop, &sources[0].watch, 0, &e), 0);
    fire(&sources[0]);
    run_once();
    assert_string_equal(order, "");
    uint64_t n;
    assert_int_equal(read(sources[0].fd, &n, sizeof n), sizeof n); /* it was there all the time */
}

static void on_number(struct timer *t) {
    note((char)(uintptr_t)t->arg);
}

static void timers_come_in_the_order_of_their_times(void **state) {
    (void)state;
    static const char wanted[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t n = sizeof wanted - 1;
    for (size_t i = 0; i < n; i++) {
        size_t k = i * 11 % n; /* 11 and 26 have no common divisor: each once, not in order */
        timers[k] = (struct timer){.fn = on_number, .arg = (void *)(uintptr_t)wanted[k]};
        loop_timer(loop, &timers[k], 1000 + k);
    }
    loop_timer(loop, &stopper, 5000);
    struct err e;
    assert_int_equal(loop_run(loop, &e), 0);
    assert_string_equal(order, wanted);
}

static void a_stopped_timer_does_not_come_and_a_moved_one_comes_in_its_new_place(void **state) {
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        timers[i] = (struct timer){.fn = on_number, .arg = (void *)(uintptr_t)('a' + i)};
        loop_timer(loop, &timers[i], 100 + i);
    }
    loop_timer_stop(loop, &timers[0]);
    loop_timer_stop(loop, &timers[3]);
    loop_timer_stop(loop, &timers[3]);  /* twice does nothing */
    loop_timer(loop, &timers[1], 1000); /* from second to last */
    loop_timer(loop, &timers[4], 1);    /* from last to first */
    loop_timer(loop, &stopper, 5000);
    struct err e;
    assert_int_equal(loop_run(loop, &e), 0);
    assert_string_equal(order, "ecb");
    assert_int_equal(timers[1].place, 0);
}

static void on_again(struct timer *t) {
    note('.');
    loop_timer(loop, norder < 3 ? t : &stopper, now_ns());
}

static void a_timer_may_set_itself_again(void **state) {
    struct err e;
    (void)state;
    timers[0] = (struct timer){.fn = on_again};
    loop_timer(loop, &timers[0], 1);
    assert_int_equal(loop_run(loop, &e), 0);
    assert_string_equal(order, "...");
}

static void on_later(struct deferred *d) {
    note((char)(uintptr_t)d->arg);
}

static void on_defers(struct watch *w, uint32_t events) {
    on_source(w, events);
    loop_defer(loop, &later[0]);
    loop_defer(loop, &later[0]); /* once is enough */
}

static void deferred_calls_come_once_and_after_the_whole_batch(void **state) {
    (void)state;
    later[0] = (struct deferred){.fn = on_later, .arg = (void *)(uintptr_t)'Z'};
    sources[0].watch.fn = sources[1].watch.fn = on_defers;
    fire(&sources[0]);
    fire(&sources[1]);
    run_once();
    assert_int_equal(norder, 3);
    assert_int_equal(order[2], 'Z');
    assert_false(later[0].queued);
}

static void on_defers_more(struct deferred *d) {
    note('1');
    (void)d;
    loop_defer(loop, &later[1]);
}

static void a_deferred_call_may_defer_another(void **state) {
    (void)state;
    later[0] = (struct deferred){.fn = on_defers_more};
    later[1] = (struct deferred){.fn = on_later, .arg = (void *)(uintptr_t)'2'};
    loop_defer(loop, &later[0]);
    run_once();
    assert_string_equal(order, "12");
}

static void on_defers_itself(struct deferred *d) {
    note('d');
    if (norder == 1)
        fire(&sources[0]);
    if (norder < 8)
        loop_defer(loop, d);
    else
        loop_stop(loop);
}

static void a_call_that_defers_itself_holds_nobody_up(void **state) {
    struct err e;
    (void)state;
    later[0] = (struct deferred){.fn = on_defers_itself};
    loop_defer(loop, &later[0]);
    assert_int_equal(loop_run(loop, &e), 0);
    assert_string_equal(order, "dadddddd");
}

static uint64_t last_turn;

static void on_waits_for_turns(struct deferred *d) {
    if (loop_turn(loop) == last_turn)
        note('-');
    last_turn = loop_turn(loop);
    loop_defer(loop, d);
}

static void a_call_that_always_waits_for_the_next_turn_lets_the_loop_stop(void **state) {
    (void)state;
    last_turn = 0;
    later[0] = (struct deferred){.fn = on_waits_for_turns};
    loop_defer(loop, &later[0]);
    run_once();
    assert_string_equal(order, ""); /* each time it was the next one */
}

static void deferred_calls_come_in_order(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        later[i] = (struct deferred){.fn = on_later, .arg = (void *)(uintptr_t)('1' + i)};
        loop_defer(loop, &later[i]);
    }
    run_once();
    assert_string_equal(order, "123");
}

static void a_signal_arrives_on_its_descriptor(void **state) {
    struct err e;
    (void)state;
    const int wanted[] = {SIGUSR1};
    int fd;
    assert_int_equal(loop_signals(wanted, 1, &fd, &e), 0);
    raise(SIGUSR1);
    struct {
        char bytes[128];
    } info;
    assert_int_equal(read(fd, &info, sizeof info), sizeof info);
    fd_close(&fd);
}

static void an_epoll_descriptor_is_told_after_the_others_until_it_is_taken_out(void **state) {
    (void)state;
    struct source inner = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .name = 'o'};
    int outer = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event in = {.events = EPOLLIN};
    assert_int_equal(epoll_ctl(outer, EPOLL_CTL_ADD, inner.fd, &in), 0);
    inner.watch = (struct watch){.fd = -1, .fn = on_source, .arg = &inner};
    loop_watch_epoll(loop, &inner.watch, outer);
    run_once(); /* nothing yet */
    fire(&inner);
    run_once();
    fire(&inner);
    fire(&sources[0]);
    run_once();
    fire(&sources[1]);
    run_once();
    assert_string_equal(order, "oaob");
    fire(&inner);
    loop_unwatch(loop, &inner.watch);
    run_once();
    assert_string_equal(order, "oaob");
    fd_close(&inner.fd);
    fd_close(&outer);
}

static void a_bad_descriptor_is_an_error(void **state) {
    struct err e;
    (void)state;
    struct watch w = {.fd = -1, .fn = on_source};
    assert_int_equal(loop_watch(loop, &w, -1, EPOLLIN, &e), -1);
    assert_int_equal(w.fd, -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_ready_source_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(a_watch_taken_out_within_a_batch_hears_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_watch_may_take_itself_out, setup, teardown),
        cmocka_unit_test_setup_teardown(a_masked_watch_is_silent, setup, teardown),
        cmocka_unit_test_setup_teardown(timers_come_in_the_order_of_their_times, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_stopped_timer_does_not_come_and_a_moved_one_comes_in_its_new_place, setup, teardown),
        cmocka_unit_test_setup_teardown(a_timer_may_set_itself_again, setup, teardown),
        cmocka_unit_test_setup_teardown(deferred_calls_come_once_and_after_the_whole_batch, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_deferred_call_may_defer_another, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_that_defers_itself_holds_nobody_up, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_call_that_always_waits_for_the_next_turn_lets_the_loop_stop, setup, teardown),
        cmocka_unit_test_setup_teardown(deferred_calls_come_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(a_signal_arrives_on_its_descriptor, setup, teardown),
        cmocka_unit_test_setup_teardown(
            an_epoll_descriptor_is_told_after_the_others_until_it_is_taken_out, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bad_descriptor_is_an_error, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
