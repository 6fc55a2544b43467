/* base/window: what goes in at the end comes out at the beginning, in that order, and the array is
 * no larger than what it holds calls for. */

#include "base/window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

struct numbers {
    unsigned *items;
    size_t first, n, cap;
};

static void add(struct numbers *x, unsigned number) {
    x->items = window_room(x->items, sizeof *x->items, &x->first, x->n, &x->cap);
    x->items[x->first + x->n++] = number;
}

static unsigned take(struct numbers *x) {
    x->n--;
    return x->items[x->first++];
}

static void items_come_out_as_they_went_in(void **state) {
    (void)state;
    struct numbers x = {0};
    unsigned in = 0, out = 0;
    for (unsigned round = 0; round < 1000; round++) {
        for (unsigned i = 0; i < round % 13; i++)
            add(&x, in++);
        for (unsigned i = 0; i < round % 11 && x.n > 0; i++)
            assert_int_equal(take(&x), out++);
    }
    while (x.n > 0)
        assert_int_equal(take(&x), out++);
    assert_int_equal(out, in);
    free(x.items);
}

static void a_short_queue_stays_small(void **state) {
    (void)state;
    struct numbers x = {0};
    for (unsigned i = 0; i < 100000; i++) {
        add(&x, i);
        assert_int_equal(take(&x), i);
    }
    assert_int_equal(x.cap, 8);
    free(x.items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_come_out_as_they_went_in),
        cmocka_unit_test(a_short_queue_stays_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
