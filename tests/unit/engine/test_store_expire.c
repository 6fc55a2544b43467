/* engine/store/expire: files go when their time is over. */

#include "store_fixture.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

struct waiter {
    struct timer timer;
    uint64_t until_ns;
    unsigned files;
};

/* Looks at what the store's own timer has done. */
static void look(struct timer *t) {
    struct waiter *w = t->arg;
    if (store_usage(store).files <= w->files || now_ns() > w->until_ns)
        loop_stop(loop);
    else
        loop_timer(loop, t, now_ns() + 2000000u);
}

static void wait_until_files(unsigned files) {
    struct err e;
    struct waiter w = {.until_ns = now_ns() + 20000000000u, .files = files};
    w.timer = (struct timer){.fn = look, .arg = &w};
    loop_timer(loop, &w.timer, 0);
    assert_int_equal(loop_run(loop, &e), 0);
    assert_int_equal(store_usage(store).files, files);
}

static void a_file_is_removed_when_its_time_is_over(void **state) {
    (void)state;
    double now = real_now();
    put_pair(ID_A, "first", now - 100 + 0.3);
    put_pair(ID_B, "second", now - 100 + 0.4);
    put_pair(ID_C, "much later", now);
    reopen((struct store_options){.ttl_s = 100});
    wait_until_files(1);
    assert_int_equal(names_in_dir(), 2);
    assert_holds(ID_C, "by-hand", "much later");
}

static void the_first_upload_sets_the_timer(void **state) {
    (void)state;
    reopen((struct store_options){.ttl_s = 1});
    struct store_entry entry = must_add("x", "1");
    store_entry_done(&entry);
    wait_until_files(0);
    assert_int_equal(names_in_dir(), 0);
}

/* A time in the future is taken for the time of the start: however slow the disk is, these files
 * live for a second after it. */
static const double at_start = 1e11;

static void many_files_that_expire_at_once_all_go(void **state) {
    (void)state;
    char id[40];
    for (unsigned i = 0; i < 600; i++) { /* more than one wake-up removes */
        snprintf(id, sizeof id, "11111111-2222-4333-8444-%012x", i);
        put_pair(id, "x", at_start);
    }
    reopen((struct store_options){.ttl_s = 1});
    assert_int_equal(store_usage(store).files, 600);
    wait_until_files(0);
    assert_int_equal(names_in_dir(), 0);
}

static void an_old_file_is_gone_before_the_timer_fires(void **state) {
    (void)state;
    put_pair(ID_A, "1234", at_start);
    put_pair(ID_B, "1234", at_start);
    put_pair(ID_C, "1234", at_start);
    reopen((struct store_options){.ttl_s = 1, .total_max = 3 * STORE_FILE_COST + 12});
    assert_int_equal(store_usage(store).files, 3);
    double over = real_now() + 1;
    while (real_now() < over) /* the loop does not run */
        usleep(10000);
    assert_lists("t", "");
    assert_no_file("t", ID_A);
    assert_int_equal(store_usage(store).files, 2);
    char *text = repeat("x", 2 * STORE_FILE_COST + 12);
    struct store_entry entry = must_add("new", text); /* the room of the old ones */
    free(text);
    assert_int_equal(store_usage(store).files, 1);
    assert_int_equal(names_in_dir(), 2);
    store_entry_done(&entry);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_removed_when_its_time_is_over),
        TEST(the_first_upload_sets_the_timer),
        TEST(many_files_that_expire_at_once_all_go),
        TEST(an_old_file_is_gone_before_the_timer_fires),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
