/* base/list: items go in at either end or any place, and come out of wherever they are. */

#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct item {
    char name;
    struct item *next, *also; /* in two lists at once */
};

static struct item a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'};

static const char *names(const struct item *first) {
    static char text[8];
    size_t n = 0;
    for (; first && n < sizeof text - 1; first = first->next)
        text[n++] = first->name;
    text[n] = '\0';
    return text;
}

static struct item *abc(void) {
    struct item *list = NULL;
    LIST_APPEND(&list, &a, next);
    LIST_APPEND(&list, &b, next);
    LIST_APPEND(&list, &c, next);
    return list;
}

static void items_go_to_the_front_or_the_end(void **state) {
    (void)state;
    struct item *list = NULL;
    LIST_PUSH(&list, &b, next);
    LIST_PUSH(&list, &a, next);
    LIST_APPEND(&list, &c, next);
    assert_string_equal(names(list), "abc");
    assert_ptr_equal(LIST_END(&list, next), &c.next);
}

static bool take_out(struct item **list, struct item *i) {
    return LIST_REMOVE(list, i, next);
}

static void take_first(struct item **list) {
    (void)LIST_POP(list, next);
}

static void an_item_is_taken_out_of_anywhere(void **state) {
    (void)state;
    static const struct {
        struct item *item;
        const char *left;
    } cases[] = {{&a, "bc"}, {&b, "ac"}, {&c, "ab"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct item *list = abc();
        assert_true(take_out(&list, cases[i].item));
        assert_string_equal(names(list), cases[i].left);
        assert_false(take_out(&list, cases[i].item));
        assert_string_equal(names(list), cases[i].left);
    }
}

static void the_first_comes_out_first(void **state) {
    (void)state;
    struct item *list = abc();
    assert_ptr_equal(LIST_POP(&list, next), &a);
    assert_ptr_equal(LIST_POP(&list, next), &b);
    assert_ptr_equal(LIST_POP(&list, next), &c);
    assert_null(LIST_POP(&list, next));
    assert_null(list);
}

static void a_walk_takes_out_what_it_stands_on(void **state) {
    (void)state;
    struct item *list = abc();
    for (struct item *i = list; i; i = i->next) {
        if (i != &b)
            (void)take_out(&list, i);
    }
    assert_string_equal(names(list), "b");
    list = abc();
    for (struct item **at = &list; *at;) {
        if (*at == &b)
            take_first(at);
        else
            at = &(*at)->next;
    }
    assert_string_equal(names(list), "ac");
}

static void an_item_is_in_two_lists(void **state) {
    (void)state;
    struct item *list = abc(), *other = NULL;
    LIST_PUSH(&other, &b, also);
    LIST_PUSH(LIST_FIND(&other, &b, also), &c, also);
    assert_ptr_equal(other, &c);
    assert_ptr_equal(other->also, &b);
    (void)LIST_REMOVE(&list, &b, next);
    assert_string_equal(names(list), "ac");
    assert_ptr_equal(other->also, &b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_go_to_the_front_or_the_end),
        cmocka_unit_test(an_item_is_taken_out_of_anywhere),
        cmocka_unit_test(the_first_comes_out_first),
        cmocka_unit_test(a_walk_takes_out_what_it_stands_on),
        cmocka_unit_test(an_item_is_in_two_lists),
    };
    return cmocka_run_group_tests_name("base/list", tests, NULL, NULL);
}
