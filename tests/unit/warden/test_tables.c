/* warden/requests and warden/reports: who may say what, and when. */

#include "warden/reports.h"
#include "warden/requests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A letter for each stage in which it is allowed: - none named, g gone, s secret, o one-shot, l
 * live, k kept, e ending. */
static const char letters[] = "-gsolke";
static const struct {
    enum wire_type type;
    const char *stages;
} server_may[] = {
    {WIRE_W_MAKE, "-"},    {WIRE_W_END, "golke"}, {WIRE_W_LOST, "golke"}, {WIRE_W_KERNEL, "glke"},
    {WIRE_W_LEFT, "glke"}, {WIRE_W_SHUT, "glke"}, {WIRE_W_KEEP, "gl"},
};

static void a_server_asks_only_what_the_sandbox_is_ready_for(void **state) {
    (void)state;
    assert_int_equal(strlen(letters), STAGES_);
    for (size_t i = 0; i < sizeof server_may / sizeof *server_may; i++) {
        for (unsigned k = 0; k < STAGES_; k++) {
            bool may = strchr(server_may[i].stages, letters[k]) != NULL;
            if (requests_allows(server_may[i].type, (enum slot_stage)k) != may)
                fail_msg("%s in stage %c", wire_type_name(server_may[i].type), letters[k]);
        }
    }
}

static void a_server_asks_nothing_else(void **state) {
    (void)state;
    for (unsigned type = 0; type < WIRE_TYPES_; type++) {
        bool listed = false;
        for (size_t i = 0; i < sizeof server_may / sizeof *server_may; i++)
            listed = listed || server_may[i].type == type;
        for (unsigned k = 0; !listed && k < STAGES_; k++)
            assert_false(requests_allows((enum wire_type)type, (enum slot_stage)k));
    }
}

static void nobody_names_a_sandbox_that_was_not_told(void **state) {
    (void)state;
    for (unsigned type = 0; type < WIRE_TYPES_; type++)
        assert_false(requests_allows((enum wire_type)type, STAGE_SECRET));
}

static void a_nursery_tells_of_sandboxes_only_when_it_is_born(void **state) {
    (void)state;
    for (unsigned type = 0; type < WIRE_TYPES_; type++) {
        bool at_birth = type == WIRE_N_BORN || type == WIRE_N_STATE;
        assert_int_equal(reports_allows((enum wire_type)type, NURSERY_BIRTH), at_birth);
        bool later = type >= WIRE_N_MADE && type <= WIRE_N_STATE && type != WIRE_N_BORN;
        assert_int_equal(reports_allows((enum wire_type)type, NURSERY_BORN), later);
    }
}

/* A warden with one nursery, which has one sandbox in slot 0. */
static struct config_profile profile = {.name = (char *)"base"};
static struct slot slots[2];
static struct nursery_child nursery, other;
static struct warden warden;
static struct wire_out out;
static struct wire_in in;

static int setup(void **state) {
    (void)state;
    memset(slots, 0, sizeof slots);
    nursery = (struct nursery_child){.warden = &warden, .pid = 1, .chan = {.fd = -1}};
    other = nursery;
    warden = (struct warden){.slots = slots, .server_chan = {.fd = -1, .gone = true}};
    warden.config.max_sandboxes = warden.nslots = 2;
    warden.config.nprofiles = 1;
    warden.config.profiles[0] = profile;
    slots[0] = (struct slot){.state = SLOT_USED, .sandbox = 7, .nursery = &nursery, .told = true};
    return 0;
}

static void deliver(void) {
    struct err e;
    memset(&in, 0, sizeof in);
    memcpy(in.data, out.data, out.len);
    assert_int_equal(wire_open(&in, out.len, &e), 0);
}

static void an_end_of_a_sandbox_that_is_gone_does_nothing(void **state) {
    (void)state;
    w_end_put(&out, &(struct w_end){.sandbox = 8});
    deliver();
    assert_true(requests_serve(&warden, &in));
    w_end_put(&out, &(struct w_end){.sandbox = 7});
    deliver();
    assert_true(requests_serve(&warden, &in));
    assert_true(slots[0].ending);
}

static void guesses_and_nonsense_are_told_apart_from_requests(void **state) {
    (void)state;
    slots[0].told = false;
    w_end_put(&out, &(struct w_end){.sandbox = 7});
    deliver();
    assert_false(requests_serve(&warden, &in));
    slots[0].told = slots[0].orphan = true;
    deliver();
    assert_false(requests_serve(&warden, &in));
    slots[0].orphan = false;
    w_kernel_put(&out, &(struct w_kernel){.sandbox = 7, .number = 1});
    deliver(); /* it is no live one */
    assert_false(requests_serve(&warden, &in));
    w_end_put(&out, &(struct w_end){.sandbox = 7});
    out.len--;
    deliver();
    assert_false(requests_serve(&warden, &in));
    w_make_put(&out, &(struct w_make){.profile = 1});
    deliver();
    assert_false(requests_serve(&warden, &in));
    wire_begin(&out, WIRE_K_READY);
    deliver();
    assert_false(requests_serve(&warden, &in));
    assert_false(slots[0].ending);
}

static void a_nursery_tells_nothing_of_others_sandboxes(void **state) {
    (void)state;
    n_exited_put(&out, &(struct n_exited){.sandbox = 7});
    deliver();
    assert_true(reports_serve(&nursery, &in));
    deliver();
    assert_false(reports_serve(&other, &in));
    n_exited_put(&out, &(struct n_exited){.sandbox = 8});
    deliver();
    assert_true(reports_serve(&other, &in));
}

static void a_sandbox_comes_with_all_that_is_needed(void **state) {
    (void)state;
    struct n_made m = {.sandbox = 7};
    memset(m.fds, 0xff, sizeof m.fds);
    n_made_put(&out, &m);
    deliver();
    assert_false(reports_serve(&nursery, &in));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_asks_only_what_the_sandbox_is_ready_for),
        cmocka_unit_test(a_server_asks_nothing_else),
        cmocka_unit_test(nobody_names_a_sandbox_that_was_not_told),
        cmocka_unit_test(a_nursery_tells_of_sandboxes_only_when_it_is_born),
        cmocka_unit_test_setup(an_end_of_a_sandbox_that_is_gone_does_nothing, setup),
        cmocka_unit_test_setup(guesses_and_nonsense_are_told_apart_from_requests, setup),
        cmocka_unit_test_setup(a_nursery_tells_nothing_of_others_sandboxes, setup),
        cmocka_unit_test_setup(a_sandbox_comes_with_all_that_is_needed, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
