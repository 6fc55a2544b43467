/* nursery/orders, nursery/zygotes and init/questions: who may say what, and when. */

#include "init/questions.h"
#include "nursery/orders.h"
#include "nursery/zygotes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct may {
    enum wire_type type;
    const char *states; /* a letter for each in which it is allowed */
};

static void check(const struct may *list, size_t n, const char *letters,
                  bool (*allows)(enum wire_type type, unsigned state)) {
    for (unsigned type = 0; type < WIRE_TYPES_; type++) {
        const char *states = "";
        for (size_t i = 0; i < n; i++)
            states = list[i].type == type ? list[i].states : states;
        for (unsigned k = 0; k < strlen(letters); k++) {
            bool may = strchr(states, letters[k]) != NULL;
            if (allows((enum wire_type)type, k) != may)
                fail_msg("%s in state %c", wire_type_name((enum wire_type)type), letters[k]);
        }
    }
}

static bool order(enum wire_type type, unsigned state) {
    return orders_allows(type, (enum box_state)state);
}

static bool saying(enum wire_type type, unsigned state) {
    return zygotes_allows(type, (enum zygote_state)state);
}

static bool question(enum wire_type type, unsigned stage) {
    return questions_allows(type, (enum init_stage)stage);
}

static void the_warden_orders_what_the_sandbox_is_ready_for(void **state) {
    static const struct may list[] = {
        {WIRE_N_MAKE, "g"}, {WIRE_N_END, "gmld"}, {WIRE_N_KERNEL, "gld"}};
    (void)state;
    assert_int_equal(strlen("gmld"), BOX_STATES_);
    check(list, sizeof list / sizeof *list, "gmld", order); /* gone, making, live, dying */
}

static void a_zygote_forks_only_after_it_was_ready(void **state) {
    static const struct may list[] = {{WIRE_Z_READY, "s"},   {WIRE_Z_BROKEN, "s"},
                                      {WIRE_Z_LOST, "s"},    {WIRE_Z_FORKED, "rl"},
                                      {WIRE_Z_FAILED, "rl"}, {WIRE_Z_EXITED, "rl"}};
    (void)state;
    assert_int_equal(strlen("srlg"), ZYGOTE_STATES_);
    check(list, sizeof list / sizeof *list, "srlg", saying); /* starting, ready, leaving, gone */
}

static void init_answers_what_its_sandbox_is_for(void **state) {
    static const struct may list[] = {
        {WIRE_I_OPEN, "ol"},   {WIRE_I_CHANGES, "ol"}, {WIRE_I_KILL, "ol"},
        {WIRE_I_SIGNAL, "ol"}, {WIRE_I_NETWORK, "ol"}, {WIRE_I_TRAFFIC, "ol"},
        {WIRE_I_LIMITS, "ol"}, {WIRE_I_WATCH, "ol"},   {WIRE_I_USAGE, "ol"},
        {WIRE_I_LEFT, "fol"},  {WIRE_I_STAT, "l"},     {WIRE_I_LIST, "l"},
        {WIRE_I_MKDIR, "l"},   {WIRE_I_MOVE, "l"},     {WIRE_I_CHMOD, "l"},
        {WIRE_I_REMOVE, "l"},  {WIRE_I_TEMP, "l"},     {WIRE_I_PLACE, "l"},
        {WIRE_I_LINK, "l"},    {WIRE_I_TTY, "l"},      {WIRE_I_ECHO, "ol"},
        {WIRE_I_BIND, "l"},    {WIRE_I_CONNECT, "l"},  {WIRE_I_PORTS, "l"},
        {WIRE_I_TREE, "ol"}};
    (void)state;
    assert_int_equal(strlen("fol"), INIT_STAGES_);
    check(list, sizeof list / sizeof *list, "fol", question); /* fresh, one-shot, live */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_warden_orders_what_the_sandbox_is_ready_for),
        cmocka_unit_test(a_zygote_forks_only_after_it_was_ready),
        cmocka_unit_test(init_answers_what_its_sandbox_is_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
