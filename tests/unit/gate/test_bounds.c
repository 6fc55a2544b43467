/* cloche-gate: what one sandbox and one tenant may have at once, and how quickly. */

#include "gate_fixture.h"

#include "base/fd.h"
#include "net/judge.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* An ask that is allowed, as soon as the rate has room for it. */
static void ask_in_time(struct rig *r, int chan, uint32_t id) {
    uint32_t errnum;
    do {
        rig_ask(r, chan, id, TARGET, r->port);
        errnum = rig_verdict(r, chan, id);
    } while (errnum == EACCES && usleep(1000 * 1000 / NET_NEW_PER_SECOND) == 0);
    assert_int_equal(errnum, 0);
}

static void too_many_pending_connects_are_refused_and_withdrawing_makes_room(void **state) {
    struct rig *r = *state;
    AUTO_FD chan = rig_attach(r, 1, TARGET);
    rig_go_silent(r);
    for (uint32_t id = 0; id < NET_PENDING; id++)
        ask_in_time(r, chan, id);
    rig_ask(r, chan, 1000, TARGET, r->port);
    assert_int_equal(rig_verdict(r, chan, 1000), NET_TOO_MANY);
    a_withdraw_put(&r->out, &(struct a_withdraw){.id = 3});
    rig_send(r, chan);
    ask_in_time(r, chan, 1000);
    AUTO_FD other = rig_attach(r, 2, TARGET); /* has places of its own */
    rig_ask(r, other, 1, TARGET, r->port);
    assert_int_equal(rig_verdict(r, other, 1), 0);
}

static void only_so_many_are_open_and_an_end_makes_room(void **state) {
    struct rig *r = *state;
    AUTO_FD chan = rig_attach(r, 1, "{\"allow\": [\"" TARGET "\"], \"connections\": 2}");
    close(rig_connected(r, chan, 1));
    close(rig_connected(r, chan, 2));
    rig_ask(r, chan, 3, TARGET, r->port);
    assert_int_equal(rig_verdict(r, chan, 3), NET_TOO_MANY);
    a_end_put(&r->out, &(struct a_end){.id = 1, .bytes_out = 10, .bytes_in = 20});
    rig_send(r, chan);
    close(rig_connected(r, chan, 3));
}

/* How many connections it gets, of as many as the rate lets it make at once. */
static unsigned greedy(struct rig *r, int chan) {
    for (uint32_t id = 0; id < NET_NEW_BURST; id++) {
        rig_ask(r, chan, id, TARGET, r->port);
        if (rig_verdict(r, chan, id) != 0)
            return id;
        close(rig_result(r, chan, id)); /* it is still open for the gate */
        close(accept(r->listener, NULL, NULL));
    }
    return NET_NEW_BURST;
}

static void who_takes_all_leaves_some_for_the_next(void **state) {
    struct rig *r = *state;
    unsigned all = 0, least = NET_NEW_BURST;
    int chans[NET_GATE_SOCKETS / 2 / NET_NEW_BURST + 2];
    size_t n = sizeof chans / sizeof chans[0];
    for (size_t i = 0; i < n; i++) {
        chans[i] = rig_attach(r, i, TARGET);
        unsigned got = greedy(r, chans[i]);
        least = got < least ? got : least;
        all += got;
    }
    assert_true(all <= NET_GATE_SOCKETS / 2);
    assert_in_range(least, 10, NET_NEW_BURST - 1);
    AUTO_FD others = rig_attach_of(r, 7, 999, TARGET);
    assert_int_equal(greedy(r, others), NET_NEW_BURST); /* of another tenant */
    fd_close_all(chans, n);
    AUTO_FD chan = rig_attach(r, 1000, TARGET);
    assert_int_equal(greedy(r, chan), NET_NEW_BURST); /* all came back */
}

/* How many connects are allowed of one sandbox after the other; they come to nothing at once. */
static unsigned storm(struct rig *r, int chan, unsigned most) {
    struct a_verdict m = {.errnum = 0};
    struct err e;
    for (uint32_t id = 0; id < most; id++) {
        rig_ask(r, chan, id, "203.0.113.7", 80);
        rig_expect(r, chan, WIRE_A_VERDICT);
        assert_int_equal(a_verdict_get(&r->in, &m, &e), 0);
        if (m.errnum)
            return id;
        r->socket = -1; /* they come to nothing */
        assert_int_equal(rig_result(r, chan, id), -ENETUNREACH);
    }
    return most;
}

static void the_sandboxes_of_a_tenant_share_a_rate(void **state) {
    struct rig *r = *state;
    unsigned all = 0, n = NET_TENANT_NEW_BURST / NET_NEW_BURST + 20;
    for (unsigned i = 0; i < n; i++) {
        AUTO_FD chan = rig_attach(r, i, "203.0.113.0/24");
        all += storm(r, chan, NET_NEW_BURST);
    }
    assert_true(all < n * NET_NEW_BURST);
    AUTO_FD other = rig_attach_of(r, 7, 999, "203.0.113.0/24");
    assert_int_equal(storm(r, other, NET_NEW_BURST), NET_NEW_BURST);
}

static void a_storm_of_connects_meets_the_rate(void **state) {
    struct rig *r = *state;
    struct a_verdict m;
    struct err e;
    AUTO_FD chan = rig_attach(r, 1, "203.0.113.0/24");
    uint32_t id = storm(r, chan, 10 * NET_NEW_BURST);
    assert_true(id >= NET_NEW_BURST);
    rig_ask(r, chan, id, "203.0.113.7", 80);
    rig_expect(r, chan, WIRE_A_VERDICT);
    assert_int_equal(a_verdict_get(&r->in, &m, &e), 0);
    assert_int_equal(m.errnum, EACCES);
    assert_string_equal(m.rule, "network:limit");
}

static void refused_connects_are_not_judged_without_end(void **state) {
    struct rig *r = *state;
    AUTO_FD chan = rig_attach(r, 1, "pypi.org");
    uint32_t errnum = EACCES;
    unsigned n = 0;
    for (; errnum == EACCES; n++) {
        assert_true(n < 100 * NET_ASKS_BURST);
        rig_ask(r, chan, 1, "203.0.113.7", 80);
        errnum = rig_verdict(r, chan, 1);
    }
    assert_int_equal(errnum, NET_TOO_MANY);
    assert_true(n > NET_ASKS_BURST);
}

static void too_many_names_on_connections_are_refused(void **state) {
    struct rig *r = *state;
    struct a_helloed m = {.allowed = 1};
    struct err e;
    AUTO_FD chan = rig_attach(r, 1, "[\"" TARGET "\", \"a.test\"]");
    close(rig_connected(r, chan, 1));
    unsigned n = 0;
    for (; m.allowed; n++) {
        assert_true(n < 100 * NET_HELLOS_BURST);
        a_hello_put(&r->out, &(struct a_hello){.id = 1, .check = NET_CHECK_HTTP, .name = "a.test"});
        rig_send(r, chan);
        rig_expect(r, chan, WIRE_A_HELLOED);
        assert_int_equal(a_helloed_get(&r->in, &m, &e), 0);
    }
    assert_true(n > NET_HELLOS_BURST);
    assert_string_equal(m.rule, "network:limit");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_GATE(too_many_pending_connects_are_refused_and_withdrawing_makes_room),
        WITH_GATE(only_so_many_are_open_and_an_end_makes_room),
        WITH_GATE(who_takes_all_leaves_some_for_the_next),
        WITH_GATE(the_sandboxes_of_a_tenant_share_a_rate),
        WITH_GATE(a_storm_of_connects_meets_the_rate),
        WITH_GATE(refused_connects_are_not_judged_without_end),
        WITH_GATE(too_many_names_on_connections_are_refused),
    };
    if (!rig_enter())
        return 77; /* no namespaces here: skipped */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
