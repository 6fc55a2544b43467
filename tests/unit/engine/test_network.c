/* What a sandbox may reach: the gate that comes, goes and does not answer, and init's part of it.
 * The test plays the gate as well:
 *
 *   enter          somebody has the sandbox at hand
 *   gate  no-gate  the warden gives a channel to a gate; says that it is gone
 *   set  set=N     terms for the sandbox; N of them are nobody's business but the gate's
 *   attached  refused=WHY  in-force=N  the gate's answers
 *   late           whoever waits has waited for too long
 *   leave          whoever waited does not any more
 *   old            the sandbox's init is of an older build
 *   layer=STATE    what the machine gives of the layer egress
 *   open=N         the gate tells of outside sockets */

#include "rig.h"

#include "base/fd.h"
#include "engine/core/budget.h"
#include "engine/core/network.h"
#include "engine/network/terms.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int gate = -1;
static struct network_terms terms;
static struct limits limits = {.memory_mb = 64};
static struct guest guest;
static struct sandbox *mine; /* NULL: nobody has it */

/* ---- who has the sandbox ---- */

static void on_assign(void *owner, struct sandbox *s) {
    (void)owner;
    mine = s;
}

static void on_fail(void *owner, const struct err *why) {
    (void)owner, (void)why;
}

static void on_answer(void *owner, enum asked what, struct wire_in *in) {
    (void)owner, (void)in;
    if (what == ASKED_NETWORK)
        rig_say((struct rig *)guest.owner, "answer");
}

static void on_lost(void *owner) {
    (void)owner;
    mine = NULL;
}

static const struct guest_kind kind = {
    .assign = on_assign, .fail = on_fail, .answer = on_answer, .lost = on_lost};

static void enter(struct rig *r) {
    guest =
        (struct guest){.kind = &kind, .owner = r, .limits = &limits, .id = "exe_x", .tenant = "a"};
    pool_enter(&r->engine->pools[0], &guest, "a");
}

/* ---- the gate ---- */

static void on_done(void *arg, const struct err *why) {
    rig_say(arg, "%s", why ? why->kind : "done");
}

static void give_gate(struct rig *r, bool there) {
    int pair[2] = {-1, -1};
    struct wire_out o;
    struct err e;
    fd_close(&gate);
    if (there)
        assert_int_equal(wire_pair(pair, &e), 0);
    w_gate_put(&o, &(struct w_gate){.gate = pair[0]});
    assert_int_equal(wire_send(r->warden, &o, &e), WIRE_SENT);
    fd_close(&pair[0]);
    gate = pair[1];
}

static void gate_says(const struct wire_out *o) {
    struct err e;
    assert_int_equal(wire_send(gate, o, &e), WIRE_SENT);
}

static void attach(struct rig *r, const char *why) {
    int pair[2] = {-1, -1};
    struct wire_out o;
    struct err e;
    if (!why)
        assert_int_equal(wire_pair(pair, &e), 0);
    g_attached_put(&o, &(struct g_attached){.sandbox = rig_sandbox(r)->id,
                                            .channel = pair[0],
                                            .why = why ? why : ""});
    gate_says(&o);
    fd_close(&pair[0]);
    fd_close(&pair[1]);
}

static void hear_gate(struct rig *r) {
    for (;;) {
        AUTO_WIRE_IN in = {0};
        struct g_policy policy;
        struct err e;
        if (gate < 0 || fcntl(gate, F_SETFL, O_NONBLOCK) < 0 ||
            wire_recv(gate, &in, &e) != WIRE_GOT)
            return;
        if (g_policy_get(&in, &policy, &e) == 0)
            rig_say(r, "G_POLICY=%u", policy.serial);
        else
            rig_say(r, "%s", wire_type_name(in.type));
    }
}

/* ---- words ---- */

static void set_terms(struct rig *r) {
    struct err e;
    assert_non_null(mine);
    if (network_set(mine, &terms, on_done, r, &e) < 0)
        rig_say(r, "set:%s", e.kind);
}

static void set_layer(struct rig *r, const char *state) {
    struct wire_out o;
    struct err e;
    w_layer_put(&o,
                &(struct w_layer){.name = "egress", .state = (uint32_t)atoi(state), .how = "no"});
    assert_int_equal(wire_send(r->warden, &o, &e), WIRE_SENT);
}

static bool word(struct rig *r, const char *name, const char *value) {
    struct wire_out o;
    uint32_t n = (uint32_t)atoi(value);
    if (strcmp(name, "enter") == 0)
        enter(r);
    else if (strcmp(name, "gate") == 0 || strcmp(name, "no-gate") == 0)
        give_gate(r, *name == 'g');
    else if (strcmp(name, "set") == 0)
        set_terms(r);
    else if (strcmp(name, "attached") == 0 || strcmp(name, "refused") == 0)
        attach(r, *name == 'r' ? value : NULL);
    else if (strcmp(name, "late") == 0)
        rig_fire(r, &mine->network.deadline);
    else if (strcmp(name, "leave") == 0)
        network_leave(mine, r);
    else if (strcmp(name, "old") == 0)
        mine->version = WIRE_OLDEST;
    else if (strcmp(name, "layer") == 0)
        set_layer(r, value);
    else if (strcmp(name, "in-force") == 0) {
        g_in_force_put(&o, &(struct g_in_force){.sandbox = rig_sandbox(r)->id, .serial = n});
        gate_says(&o);
    } else if (strcmp(name, "open") == 0) {
        g_open_put(&o, &(struct g_open){.sandbox = rig_sandbox(r)->id, .connections = n});
        gate_says(&o);
    } else if (strcmp(name, "lost") == 0) {
        g_lost_put(&o, &(struct g_lost){.sandbox = rig_sandbox(r)->id});
        gate_says(&o);
    } else if (strcmp(name, "hear") == 0)
        hear_gate(r);
    else
        return false;
    return true;
}

/* ---- tests ---- */

#define HAD     "profile enter made up "
#define ASKED   HAD "gate set hear "
#define THERE   ASKED "attached reply hear "
#define HAD_    "W_MAKE"
#define ASKED_  HAD_ " G_ATTACH"
#define THERE_  ASKED_ " I_NETWORK done answer"
#define AGAIN_  " I_NETWORK answer"
#define NOTHING "network_unavailable"

static const struct rig_case cases[] = {
    {"a policy goes to the gate, its channel to init", THERE, THERE_},
    {"the policy is there before the gate", HAD "set gate hear attached reply",
     HAD_ " G_ATTACH I_NETWORK done answer"},
    {"no gate comes in time", HAD "set late", HAD_ " " NOTHING},
    {"it comes too late for who waited, and is used all the same",
     HAD "set late gate hear attached reply", HAD_ " " NOTHING " G_ATTACH I_NETWORK answer"},
    {"the gate does not answer", ASKED "late", ASKED_ " " NOTHING},
    {"the gate refuses", ASKED "refused=no", ASKED_ " " NOTHING},
    {"init cannot take it", ASKED "attached error", ASKED_ " I_NETWORK " NOTHING " answer"},
    {"init does not answer", ASKED "attached late", ASKED_ " I_NETWORK " NOTHING},
    {"who waited may leave", ASKED "leave attached reply", ASKED_ " I_NETWORK answer"},
    {"two at once are one too many", ASKED "set", ASKED_ " set:sandbox_busy"},
    {"the machine cannot", HAD "layer=2 gate set", HAD_ " set:" NOTHING},
    {"the machine can, somehow", HAD "layer=1 gate set hear", HAD_ " G_ATTACH"},

    {"its init is of an older build", HAD "old gate set hear", HAD_ " set:" NOTHING},

    {"another policy", THERE "set hear in-force=2", THERE_ " G_POLICY=2 done"},
    {"an answer to an earlier one is none", THERE "set hear in-force=1", THERE_ " G_POLICY=2"},
    {"another policy that is not answered", THERE "set hear late", THERE_ " G_POLICY=2 " NOTHING},
    {"another policy before init has the channel", ASKED "leave set hear attached in-force=2 reply",
     ASKED_ " G_POLICY=2 I_NETWORK done answer"},

    {"the gate goes, and init hears of it", THERE "no-gate reply", THERE_ AGAIN_},
    {"another gate gets the policy, and init its channel",
     THERE "no-gate reply gate hear attached reply", THERE_ AGAIN_ " G_ATTACH" AGAIN_},
    {"another gate at once: the older answer does not count",
     THERE "gate hear attached set hear in-force=2 reply reply",
     THERE_ " I_NETWORK G_ATTACH I_NETWORK G_POLICY=2 answer done answer"},
    {"a policy while there is no gate", THERE "no-gate reply set gate hear attached reply",
     THERE_ AGAIN_ " G_ATTACH I_NETWORK done answer"},
    {"the gate dies while it is asked", ASKED "no-gate gate hear attached reply",
     ASKED_ " G_ATTACH I_NETWORK done answer"},

    {"a lost channel comes back with the next policy", THERE "lost set hear attached reply",
     THERE_ " G_ATTACH I_NETWORK done answer"},
    {"a channel that is lost while a policy waits", THERE "set hear lost hear attached reply",
     THERE_ " G_POLICY=2 G_ATTACH I_NETWORK done answer"},
    {"a channel that is lost before init has it", ASKED "attached lost reply set hear",
     ASKED_ " I_NETWORK answer set:sandbox_busy G_ATTACH"},

    {"a sandbox that ends is forgotten", THERE "gone hear", THERE_ " W_END G_FORGET"},
    {"one that ends while it waits", ASKED "gone hear", ASKED_ " W_END G_FORGET"},
    {"one that ends while there is no gate", HAD "set gone", HAD_ " W_END"},
};

static void the_network_goes_as_the_script_says(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config c = rig_config();
        struct rig r;
        mine = NULL;
        rig_init(&r, &c);
        r.word = word;
        rig_play(&r, &cases[i]);
        rig_done(&r);
        fd_close(&gate);
    }
}

static void outside_sockets_count_in_the_budget(void **state) {
    (void)state;
    struct config c = rig_config();
    struct rig r;
    struct err e;
    c.memory_budget_mb = 256;
    rig_init(&r, &c);
    r.word = word;
    rig_play(&r, &(struct rig_case){"there", THERE, THERE_});
    assert_true(budget_lets(r.engine, &limits, 180ull << 20));
    rig_play_word(&r, "open=128");
    assert_true(network_bytes(mine) == 128ull << 20);
    r.engine->measured_ns = 0; /* look again */
    assert_false(budget_lets(r.engine, &limits, 180ull << 20));
    assert_int_equal(budget_fits(r.engine, 180ull << 20, &e), -1);
    rig_done(&r);
    fd_close(&gate);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_network_goes_as_the_script_says),
        cmocka_unit_test(outside_sockets_count_in_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
