/* crew: work is done beside the loop, in slices that take turns, and comes back to the loop. */

#include "base/clock.h"
#include "loop/crew.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct loop *loop;
static struct crew *crew;
static pthread_t loop_thread;

struct job {
    struct work work;
    unsigned slices; /* that it takes */
    bool was_beside; /* every slice ran in another thread than the loop's */
    bool is_back;
};
static unsigned left;

static bool job_slice(struct work *w) {
    struct job *j = w->arg;
    j->was_beside = !pthread_equal(pthread_self(), loop_thread);
    return --j->slices > 0;
}

static void job_done(struct work *w) {
    struct job *j = w->arg;
    assert_true(pthread_equal(pthread_self(), loop_thread));
    j->is_back = true;
    if (--left == 0)
        loop_stop(loop);
}

static int setup(void **state) {
    struct err e;
    (void)state;
    loop_thread = pthread_self();
    assert_int_equal(loop_new(&loop, &e), 0);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    crew_free(crew);
    loop_free(loop);
    return 0;
}

static void start(unsigned threads) {
    struct err e;
    assert_int_equal(crew_new(loop, threads, &crew, &e), 0);
}

static void run(struct job *jobs, unsigned n) {
    struct err e;
    left = n;
    for (unsigned i = 0; i < n; i++) {
        jobs[i].work = (struct work){.slice = job_slice, .done = job_done, .arg = &jobs[i]};
        crew_add(crew, &jobs[i].work);
    }
    assert_int_equal(loop_run(loop, &e), 0);
}

static void work_is_done_beside_the_loop_and_comes_back_to_it(void **state) {
    (void)state;
    struct job jobs[8] = {{.slices = 1}, {.slices = 3}, {.slices = 1}, {.slices = 1},
                          {.slices = 2}, {.slices = 1}, {.slices = 9}, {.slices = 1}};
    start(2);
    run(jobs, 8);
    for (unsigned i = 0; i < 8; i++) {
        assert_true(jobs[i].was_beside);
        assert_true(jobs[i].is_back);
        assert_int_equal(jobs[i].slices, 0);
    }
}

static bool never_ends(struct work *w) {
    (void)w;
    return true;
}

static void work_without_an_end_holds_nobody_up(void **state) {
    (void)state;
    struct work endless = {.slice = never_ends};
    struct job jobs[3] = {{.slices = 5}, {.slices = 1}, {.slices = 100}};
    start(1);
    crew_add(crew, &endless);
    run(jobs, 3);
    crew_free(crew); /* drops the endless one */
    crew = NULL;
}

static sem_t gate;

static bool waits_at_the_gate(struct work *w) {
    (void)w;
    sem_wait(&gate);
    return false;
}

static char order[8];

static bool note_owner(struct work *w) {
    order[strlen(order)] = (char)w->owner;
    return false;
}

static void owners_take_turns(void **state) {
    (void)state;
    struct job jobs[6] = {0};
    static const char owners[] = "aaaab";
    struct err e;
    left = 6;
    memset(order, 0, sizeof order);
    sem_init(&gate, 0, 0);
    start(1);
    jobs[5].work = (struct work){.slice = waits_at_the_gate, .done = job_done, .arg = &jobs[5]};
    crew_add(crew, &jobs[5].work);
    for (unsigned i = 0; i < 5; i++) {
        jobs[i].work = (struct work){.slice = note_owner,
                                     .done = job_done,
                                     .arg = &jobs[i],
                                     .owner = (unsigned char)owners[i]};
        crew_add(crew, &jobs[i].work);
    }
    sem_post(&gate);
    assert_int_equal(loop_run(loop, &e), 0);
    assert_string_equal(order, "abaaa");
    sem_destroy(&gate);
}

static uint64_t last_turn;

/* As long as all that is through may take of a turn. */
static void done_takes_long(struct work *w) {
    uint64_t began = now_ns();
    assert_true(loop_turn(loop) > last_turn);
    last_turn = loop_turn(loop);
    while (now_ns() - began < NS_PER_MS) {
    }
    job_done(w);
}

static void what_is_through_has_a_share_of_a_turn(void **state) {
    (void)state;
    struct job jobs[20] = {0};
    struct err e;
    left = 20;
    last_turn = 0;
    start(2);
    for (unsigned i = 0; i < 20; i++) {
        jobs[i].work = (struct work){.slice = job_slice, .done = done_takes_long, .arg = &jobs[i]};
        jobs[i].slices = 1;
        crew_add(crew, &jobs[i].work);
    }
    assert_int_equal(loop_run(loop, &e), 0);
}

static void opens_the_gate(struct work *w) {
    sem_post(&gate);
    sem_post(&gate);
    job_done(w);
}

static void long_slices_leave_a_thread_to_the_short_ones(void **state) {
    (void)state;
    struct job jobs[3] = {{.slices = 1}, {.slices = 1}, {.slices = 1}};
    struct err e;
    left = 3;
    sem_init(&gate, 0, 0);
    start(2);
    for (unsigned i = 0; i < 3; i++) {
        jobs[i].work = (struct work){.slice = i < 2 ? waits_at_the_gate : job_slice,
                                     .done = i < 2 ? job_done : opens_the_gate,
                                     .arg = &jobs[i],
                                     .is_long = i < 2};
        crew_add(crew, &jobs[i].work);
    }
    assert_int_equal(loop_run(loop, &e), 0);
    sem_destroy(&gate);
}

static void a_crew_without_work_can_be_freed(void **state) {
    (void)state;
    start(4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(work_is_done_beside_the_loop_and_comes_back_to_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(work_without_an_end_holds_nobody_up, setup, teardown),
        cmocka_unit_test_setup_teardown(owners_take_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_through_has_a_share_of_a_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(long_slices_leave_a_thread_to_the_short_ones, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_crew_without_work_can_be_freed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
