/* Whose turn it is, and who gives way in a full queue. */

#include "engine/core/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* An item is named by two letters: its tenant, and which of its programs. A script of words, read
 * from the left: "+a1" comes, "-a1" leaves, "!" is taken, "?a" asks who gives way to another of
 * a's. `expected` is what "!" and "?" said, "." for nobody. */
static const struct turn_case {
    const char *name, *script, *expected;
} cases[] = {
    {"one tenant is first come, first served", "+a1 +a2 +a3 ! ! !", "a1 a2 a3"},
    {"two take turns", "+a1 +a2 +a3 +b1 +b2 ! ! ! ! !", "a1 b1 a2 b2 a3"},
    {"a single one waits for one of the many", "+a1 +a2 +a3 +a4 ! +b1 ! ! !", "a1 a2 b1 a3"},
    {"who comes back waits for the round", "+a1 +b1 +c1 ! +a2 ! ! !", "a1 b1 c1 a2"},
    {"one that leaves is skipped", "+a1 +a2 +b1 -a1 ! !", "a2 b1"},
    {"the last of a tenant that leaves takes its turn with it", "+a1 +b1 +c1 -b1 ! !", "a1 c1"},
    {"the one whose turn it is leaves", "+a1 +b1 +b2 -a1 ! !", "b1 b2"},
    {"leaving from the middle keeps the order", "+a1 +a2 +a3 -a2 ! !", "a1 a3"},
    {"the newest leaves and another comes", "+a1 +a2 -a2 +a3 ! !", "a1 a3"},
    {"an empty queue can be used again", "+a1 ! +a2 !", "a1 a2"},
    {"nobody gives way to its own", "+a1 +a2 ?a", "."},
    {"nobody gives way in an empty queue", "?a", "."},
    {"the newest of the one who has most gives way", "+a1 +a2 +a3 +b1 ?c ?b", "a3 a3"},
    {"not to one who would have as many", "+a1 +a2 +b1 ?b", "."},
    {"not to one who has most itself", "+a1 +a2 +a3 +b1 ?a", "."},
    {"each with one: nobody gives way", "+a1 +b1 +c1 ?d", "."},
    {"wherever the one with most stands", "+a1 +b1 +b2 +b3 +c1 ! ?d", "a1 b3"},
};

static struct item {
    char name[3];
    struct queue_item place;
} items[16];
static unsigned nitems;

static struct queue_item *item(const char *name) {
    for (unsigned i = 0; i < nitems; i++) {
        if (memcmp(items[i].name, name, 2) == 0)
            return &items[i].place;
    }
    struct item *new = &items[nitems++];
    memcpy(new->name, name, 2);
    new->place.owner = new->name;
    return &new->place;
}

static void say(char *to, size_t cap, const struct queue_item *i) {
    size_t len = strlen(to);
    snprintf(to + len, cap - len, "%s%s", len ? " " : "", i ? (const char *)i->owner : ".");
}

static void play(const struct turn_case *c, struct queue *q, char *said, size_t cap) {
    for (const char *p = c->script; *p; p += strspn(p, " ")) {
        char tenant[2] = {p[1], '\0'};
        if (*p == '+') {
            queue_add(q, item(p + 1), tenant);
        } else if (*p == '-') {
            queue_remove(q, item(p + 1));
        } else if (*p == '?') {
            say(said, cap, queue_surplus(q, tenant));
        } else {
            struct queue_item *first = queue_first(q);
            assert_ptr_equal(queue_take(q), first);
            assert_null(first->lane);
            say(said, cap, first);
        }
        p += strcspn(p, " ");
    }
}

static void turns_are_as_the_script_says(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct queue q = {0};
        char said[200] = "";
        memset(items, 0, sizeof items);
        nitems = 0;
        play(&cases[i], &q, said, sizeof said);
        if (strcmp(said, cases[i].expected) != 0)
            fail_msg("%s: %s instead of %s", cases[i].name, said, cases[i].expected);
        while (q.n)
            queue_take(&q);
        assert_null(queue_first(&q));
    }
}

/* Every tenant gets its share, however unevenly they come. */
static void a_full_queue_ends_up_evenly_shared(void **state) {
    (void)state;
    enum { ROOM = 12, TRIES = 400 };
    static struct queue_item places[TRIES];
    static const char *const tenants[] = {"many", "some", "few"};
    struct queue q = {0};
    unsigned held[3] = {0};
    for (unsigned i = 0; i < TRIES; i++) {
        unsigned t = i < 200 ? 0 : i % 8 ? 1 : 2;
        struct queue_item *out = q.n < ROOM ? NULL : queue_surplus(&q, tenants[t]);
        if (q.n == ROOM && !out)
            continue;
        if (out) {
            held[(uintptr_t)out->owner]--;
            queue_remove(&q, out);
        }
        places[i] = (struct queue_item){.owner = (void *)(uintptr_t)t};
        queue_add(&q, &places[i], tenants[t]);
        held[t]++;
    }
    assert_int_equal(q.n, ROOM);
    for (unsigned t = 0; t < 3; t++)
        assert_int_equal(held[t], ROOM / 3);
    while (q.n)
        queue_take(&q);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_are_as_the_script_says),
        cmocka_unit_test(a_full_queue_ends_up_evenly_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
