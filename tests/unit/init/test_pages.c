/* init/pages, init/machine: what sockets can hold, what a machine lacks, and who goes first. */

#include "init/machine.h"
#include "init/pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MB       (1u << 20)
#define HEAD     960 /* of a buffer of TCP, with the usual configuration */
#define FRAGMENT 32768
#define AT_ONCE  1
#define EARLIER  8
#define LATER    16

static void queues_hold_no_less_than_they_can(void **state) {
    (void)state;
    static const struct {
        const char *what;
        struct queues q;
        uint64_t least, most; /* pages */
    } cases[] = {
        {"nothing", {0}, 0, 0},
        {"a byte", {.received = HEAD + 1, .unread = 1}, 1, 34},
        {"17 pages for 17 bytes", {.received = HEAD + 17, .unread = 17}, 17, 34},
        {"seen: 1,130 pages", {.received = 67 * HEAD + 1130, .unread = 1130}, 1130, 2300},
        {"what was not sent", {.sent = 67 * HEAD + 1130, .unsent = 1130}, 1130, 2300},
        {"what waits for the lock", {.backlog = 67 * (HEAD + 17)}, 1130, 2300},
        {"64 KiB of data", {.received = HEAD + 65536, .unread = 65536}, 0, 34},
        {"a megabyte in large buffers", {.received = 16 * (HEAD + 65536), .unread = MB}, 0, 450},
        {"connections that wait at a listener", {.unread = 16, .unsent = 16}, 0, 0},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t pages = pages_held(&cases[i].q) / FRAGMENT;
        /* What is charged is not counted again. */
        if (pages + 1 < cases[i].least || pages > cases[i].most)
            fail_msg("%s: %lu pages", cases[i].what, (unsigned long)pages);
    }
}

static void who_grew_with_what_is_lacking_goes_first(void **state) {
    (void)state;
    static const struct {
        const char *what;
        struct pages_look first, now;
        unsigned looks;
    } cases[] = {
        {"grew", {800u * MB, 0, 400u * MB}, {1500u * MB, 0, 800u * MB}, AT_ONCE},
        {"grew by half of it", {0, 0, 400u * MB}, {200u * MB, 0, 800u * MB}, AT_ONCE},
        {"was there before", {2400u * MB, 0, 400u * MB}, {2400u * MB, 0, 800u * MB}, EARLIER},
        {"became less", {2400u * MB, 0, 400u * MB}, {900u * MB, 0, 800u * MB}, EARLIER},
        {"too much at the first look",
         {900u * MB, 0, 800u * MB},
         {900u * MB, 0, 800u * MB},
         EARLIER},
        {"can hold a tenth of it", {80u * MB, 0, 400u * MB}, {80u * MB, 0, 800u * MB}, LATER},
        {"in sockets of no list", {0, 0, 400u * MB}, {0, 1024u * MB, 800u * MB}, EARLIER},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned looks = pages_patience(&cases[i].first, &cases[i].now);
        if (looks != cases[i].looks)
            fail_msg("%s: %u looks", cases[i].what, looks);
    }
}

static void who_holds_little_looks_closely_seldom(void **state) {
    (void)state;
    assert_int_equal(pages_every(false, false, false), 100);
    assert_int_equal(pages_every(false, true, false), 100);
    assert_int_equal(pages_every(true, false, false), 1); /* to know from when on it is lacking */
    assert_int_equal(pages_every(true, true, false), 4);
    assert_int_equal(pages_every(true, true, true), 1); /* its time is up soon */
}

static void what_nobody_lists_is_the_rest(void **state) {
    (void)state;
    static const char text[] = "MemTotal:       1000 kB\nMemFree:         300 kB\n"
                               "MemAvailable:    600 kB\nBuffers:          10 kB\n"
                               "Cached:          200 kB\nSwapCached:        0 kB\n"
                               "Active:          400 kB\nAnonPages:       150 kB\n"
                               "Mapped:          100 kB\nShmem:            50 kB\n"
                               "KReclaimable:     70 kB\nSlab:            100 kB\n"
                               "SReclaimable:     70 kB\nKernelStack:       5 kB\n"
                               "PageTables:        6 kB\nVmallocTotal: 999999 kB\n"
                               "VmallocUsed:       7 kB\nPercpu:            8 kB\n";
    uint64_t total;
    assert_int_equal(machine_unlisted_of(text, &total), 214 * 1024);
    assert_int_equal(total, 1000 * 1024);
    assert_int_equal(machine_unlisted_of("", &total), 0);
    assert_int_equal(total, 0);
}

static void this_machine_has_less_unlisted_than_memory(void **state) {
    (void)state;
    struct machine m = {0};
    int files[MACHINE_FILES];
    machine_open(files);
    machine_begin(&m, files);
    uint64_t unlisted = machine_unlisted(&m);
    assert_true(m.total > 0 && unlisted < m.total / 2);
    assert_true(machine_unlisted_about(&m) < m.total / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queues_hold_no_less_than_they_can),
        cmocka_unit_test(who_grew_with_what_is_lacking_goes_first),
        cmocka_unit_test(who_holds_little_looks_closely_seldom),
        cmocka_unit_test(what_nobody_lists_is_the_rest),
        cmocka_unit_test(this_machine_has_less_unlisted_than_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
