/* engine/live/typing: what wakes those who wait for a terminal, and what that costs. */

#include "engine/live/typing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <termios.h>

#include <cmocka.h>

#define WAKE    100000u
#define PLAIN   1000u
#define EDITED  15000u
#define LONGEST 4000000u

static struct termios line_mode(void) {
    struct termios t = {.c_lflag = ICANON | ECHO | ISIG, .c_iflag = IXON};
    memset(t.c_cc, 0, sizeof t.c_cc);
    t.c_cc[VEOL] = 'a';
    t.c_cc[VINTR] = 3;
    return t;
}

static const struct termios raw;

static void assert_costs(const struct termios *t, const char *bytes, uint64_t ns) {
    struct typing_piece p = typing_piece(t, bytes, strlen(bytes), WAKE);
    assert_int_equal(p.n, strlen(bytes));
    assert_int_equal(p.cost_ns, ns);
}

static void each_piece_wakes_and_so_does_what_has_a_meaning(void **state) {
    struct termios line = line_mode(), signals = raw;
    (void)state;
    signals.c_lflag = ISIG;
    signals.c_cc[VINTR] = 3;
    assert_costs(&raw, "xyz", WAKE + 3 * PLAIN);
    assert_costs(&raw, "\003", WAKE + PLAIN);
    assert_costs(&signals, "x\003", 2 * WAKE + 2 * PLAIN);
    assert_costs(&line, "xyz", WAKE + 3 * EDITED);
    assert_costs(&line, "xy\n", 2 * WAKE + 3 * EDITED);
    assert_costs(&line, "aaa", 4 * WAKE + 3 * EDITED);
    assert_costs(NULL, "xyz", 4 * WAKE + 3 * EDITED);
}

static void pieces_are_short(void **state) {
    char lines[1000], letters[1000];
    struct termios line = line_mode();
    (void)state;
    memset(lines, '\n', sizeof lines);
    memset(letters, 'x', sizeof letters);
    struct typing_piece p = typing_piece(&line, lines, sizeof lines, WAKE);
    assert_true(p.n > 10 && p.n < 100 && p.cost_ns <= LONGEST);
    p = typing_piece(&raw, letters, sizeof letters, WAKE);
    assert_int_equal(p.n, 256);
    p = typing_piece(&line, lines, sizeof lines, 10 * LONGEST);
    assert_int_equal(p.n, 1); /* it goes on, however slowly */
}

static void more_who_may_wait_cost_more(void **state) {
    struct limits few = {.pids = 16, .open_files = 64}, many = {.pids = 64, .open_files = 1024};
    (void)state;
    assert_true(typing_wake_ns(&few) >= 72000);
    assert_true(typing_wake_ns(&many) >= 72000 + 64 * 1024 * 7);
    assert_true(typing_wake_ns(&few) < typing_wake_ns(&many));
}

static void a_changed_meaning_is_seen(void **state) {
    struct termios line = line_mode(), other = line_mode();
    (void)state;
    assert_false(typing_differs(&line, &other));
    other.c_cc[VEOL] = 'b';
    assert_true(typing_differs(&line, &other));
    assert_true(typing_differs(&line, &raw));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_piece_wakes_and_so_does_what_has_a_meaning),
        cmocka_unit_test(pieces_are_short),
        cmocka_unit_test(more_who_may_wait_cost_more),
        cmocka_unit_test(a_changed_meaning_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
