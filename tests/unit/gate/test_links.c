/* cloche-gate: connects, verdicts, results, policies that change, servers that come and go. */

#include "gate_fixture.h"

#include "base/fd.h"
#include "net/judge.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void stands(struct rig *r, int chan, uint32_t id, const char *address, uint16_t port) {
    struct net_addr a;
    assert_true(net_addr_parse(address, strlen(address), &a));
    a_stands_put(&r->out,
                 &(struct a_stands){
                     .id = id, .port = port, .address = {a.b, sizeof a.b}, .rule = "", .name = ""});
    rig_send(r, chan);
}

/* Whatever else the server hears before that. */
static void server_hears(struct rig *r, enum wire_type type) {
    do
        rig_recv(r, r->server);
    while (r->in.type != type);
}

static void an_allowed_connect_brings_a_connected_socket(void **state) {
    struct rig *r = *state;
    char byte = 0;
    AUTO_FD chan = rig_attach(r, 1, TARGET);
    AUTO_FD fd = rig_connected(r, chan, 5);
    AUTO_FD peer = accept(r->listener, NULL, NULL);
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(read(peer, &byte, 1), 1);
    assert_int_equal(byte, 'x');
}

/* It knows of no socket in a verdict. */
static void an_older_init_gets_the_socket_in_a_message_of_its_own(void **state) {
    struct rig *r = *state;
    struct wire_out lowered;
    AUTO_FD chan = rig_attach(r, 1, TARGET);
    rig_prepare_ask(r, 5, TARGET, r->port);
    assert_true(wire_lower(&r->out, 5, &lowered));
    r->out = lowered;
    rig_send(r, chan);
    assert_int_equal(rig_verdict(r, chan, 5), 0);
    assert_true(r->socket < 0);
    AUTO_FD fd = rig_result(r, chan, 5);
    assert_true(fd >= 0);
}

static void a_service_that_is_stopped_is_ended_by_its_warden(void **state) {
    struct rig *r = *state;
    AUTO_FD chan = rig_attach(r, 1, TARGET);
    assert_int_equal(kill(r->pid, SIGTERM), 0);
    assert_int_equal(kill(r->pid, SIGHUP), 0);
    close(rig_connected(r, chan, 1));
}

static void a_refused_connect_says_what_is_allowed_and_is_noted(void **state) {
    struct rig *r = *state;
    struct a_verdict m;
    struct g_note n;
    struct err e;
    AUTO_FD chan = rig_attach(r, 1, "pypi.org:443");
    rig_ask(r, chan, 5, "203.0.113.7", 80);
    rig_expect(r, chan, WIRE_A_VERDICT);
    assert_int_equal(a_verdict_get(&r->in, &m, &e), 0);
    assert_int_equal(m.errnum, EACCES);
    assert_string_equal(m.rule, "network:default-deny");
    assert_string_equal(m.op, "connect to 203.0.113.7 port 80");
    assert_non_null(strstr(m.detail, "pypi.org:443"));
    server_hears(r, WIRE_G_NOTE);
    assert_int_equal(g_note_get(&r->in, &n, &e), 0);
    assert_int_equal(n.refused, 1);
    assert_int_equal(n.process, 7);
    assert_string_equal(n.target, "203.0.113.7 port 80");
}

static void what_the_outside_answers_is_told(void **state) {
    struct rig *r = *state;
    AUTO_FD chan = rig_attach(r, 1, TARGET ", 203.0.113.0/24");
    rig_ask(r, chan, 5, TARGET, 1);
    assert_int_equal(rig_verdict(r, chan, 5), 0);
    assert_int_equal(rig_result(r, chan, 5), -ECONNREFUSED);
    rig_ask(r, chan, 5, "203.0.113.7", 80); /* the id is free again */
    assert_int_equal(rig_verdict(r, chan, 5), 0);
    assert_int_equal(rig_result(r, chan, 5), -ENETUNREACH);
}

static void the_hosts_own_addresses_are_shut_even_when_all_is_open(void **state) {
    struct rig *r = *state;
    AUTO_FD chan = rig_attach(r, 1, "open");
    rig_ask(r, chan, 1, "127.0.0.1", r->port);
    assert_int_equal(rig_verdict(r, chan, 1), EACCES);
    rig_ask(r, chan, 2, "::1", r->port);
    assert_int_equal(rig_verdict(r, chan, 2), EACCES);
    rig_ask(r, chan, 4, TARGET, r->port);
    assert_int_equal(rig_verdict(r, chan, 4), EACCES);
    rig_ask(r, chan, 3, "10.0.0.1", 80);
    assert_int_equal(rig_verdict(r, chan, 3), EACCES);
}

static void an_address_that_becomes_the_hosts_own_is_shut(void **state) {
    struct rig *r = *state;
    struct a_close m;
    struct err e;
    AUTO_FD chan = rig_attach(r, 1, "open");
    stands(r, chan, 1, "192.88.77.66", 443); /* what stands is judged: it is let be */
    rig_ask(r, chan, 2, "192.88.77.66", 443);
    assert_int_equal(rig_verdict(r, chan, 2), 0);
    assert_int_equal(rig_result(r, chan, 2), -ENETUNREACH);
    assert_true(rig_add_address("lo:2", "192.88.77.66"));
    rig_expect(r, chan, WIRE_A_CLOSE);
    assert_int_equal(a_close_get(&r->in, &m, &e), 0);
    assert_int_equal(m.id, 1);
    rig_ask(r, chan, 3, "192.88.77.66", 443);
    assert_int_equal(rig_verdict(r, chan, 3), EACCES);
}

/* A network that the host answers for without having its addresses (AnyIP). */
static void what_is_this_host_by_its_routes_is_shut(void **state) {
    struct rig *r = *state;
    const struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(4711)};
    AUTO_FD listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (system("ip route replace local 192.0.2.0/24 dev lo 2>/dev/null") != 0)
        skip(); /* no iproute2 */
    assert_int_equal(bind(listener, (const struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(listener, 8), 0);
    AUTO_FD chan = rig_attach(r, 1, "192.0.2.0/24");
    rig_ask(r, chan, 1, "192.0.2.9", 4711);
    assert_int_equal(rig_verdict(r, chan, 1), 0); /* nobody could know */
    assert_int_equal(rig_result(r, chan, 1), -EACCES);
}

static void another_policy_closes_what_it_does_not_allow(void **state) {
    struct rig *r = *state;
    struct g_in_force in_force;
    struct a_close m;
    struct err e;
    AUTO_FD chan = rig_attach(r, 1, TARGET);
    close(rig_connected(r, chan, 1));
    AUTO_FD policy = rig_policy_fd("pypi.org");
    g_policy_put(&r->out, &(struct g_policy){.sandbox = 1, .serial = 4, .policy = policy});
    rig_send(r, r->server);
    rig_expect(r, chan, WIRE_A_LIMITS);
    rig_expect(r, chan, WIRE_A_CLOSE);
    assert_int_equal(a_close_get(&r->in, &m, &e), 0);
    assert_int_equal(m.id, 1);
    assert_string_not_equal(m.detail, "");
    rig_ask(r, chan, 2, TARGET, r->port);
    assert_int_equal(rig_verdict(r, chan, 2), EACCES);
    server_hears(r, WIRE_G_IN_FORCE); /* after a while, though the end was not told */
    assert_int_equal(g_in_force_get(&r->in, &in_force, &e), 0);
    assert_int_equal(in_force.serial, 4);
    assert_int_equal(in_force.closed, 1);
}

/* Who asked for the policy hears of it when nothing passes any more that it does not allow. */
static void a_policy_is_in_force_when_what_it_closes_is_over(void **state) {
    struct rig *r = *state;
    struct g_in_force m;
    struct err e;
    AUTO_FD chan = rig_attach(r, 1, TARGET);
    AUTO_FD policy = rig_policy_fd("pypi.org");
    for (uint32_t id = 1; id <= 2; id++) {
        close(rig_connected(r, chan, id));
        close(accept(r->listener, NULL, NULL));
    }
    g_policy_put(&r->out, &(struct g_policy){.sandbox = 1, .serial = 4, .policy = policy});
    rig_send(r, r->server);
    rig_expect(r, chan, WIRE_A_LIMITS);
    for (uint32_t id = 1; id <= 2; id++)
        rig_expect(r, chan, WIRE_A_CLOSE);
    a_end_put(&r->out, &(struct a_end){.id = 1});
    rig_send(r, chan);
    rig_ask(r, chan, 3, "203.0.113.7", 80);
    assert_int_equal(rig_verdict(r, chan, 3), EACCES);
    while (!rig_is_quiet(r->server)) {
        rig_recv(r, r->server);
        assert_int_not_equal(r->in.type, WIRE_G_IN_FORCE);
    }
    a_end_put(&r->out, &(struct a_end){.id = 2});
    rig_send(r, chan);
    server_hears(r, WIRE_G_IN_FORCE);
    assert_int_equal(g_in_force_get(&r->in, &m, &e), 0);
    assert_int_equal(m.serial, 4);
    assert_int_equal(m.closed, 2);
}

static void a_pending_connect_that_is_not_allowed_any_more_fails(void **state) {
    struct rig *r = *state;
    AUTO_FD chan = rig_attach(r, 1, TARGET);
    rig_go_silent(r);
    rig_ask(r, chan, 1, TARGET, r->port);
    assert_int_equal(rig_verdict(r, chan, 1), 0);
    AUTO_FD policy = rig_policy_fd("none");
    g_policy_put(&r->out, &(struct g_policy){.sandbox = 1, .serial = 1, .policy = policy});
    rig_send(r, r->server);
    rig_expect(r, chan, WIRE_A_LIMITS);
    assert_true(rig_result(r, chan, 1) < 0);
    rig_ask(r, chan, 2, TARGET, r->port);
    assert_int_equal(rig_verdict(r, chan, 2), ENETUNREACH);
}

static void attached_sandboxes_go_on_without_a_server(void **state) {
    struct rig *r = *state;
    AUTO_FD chan = rig_attach(r, 1, TARGET);
    fd_close(&r->server);
    close(rig_connected(r, chan, 1));
    rig_meet(r);
    close(rig_connected(r, chan, 2));
}

static void a_new_server_attaches_again_and_what_stands_counts(void **state) {
    struct rig *r = *state;
    const char *two = "{\"allow\": [\"" TARGET "\"], \"connections\": 2}";
    AUTO_FD chan = rig_attach(r, 1, two);
    close(rig_connected(r, chan, 1));
    close(rig_connected(r, chan, 2));
    rig_meet(r);
    AUTO_FD next = rig_attach(r, 1, two);
    stands(r, next, 1, TARGET, r->port); /* and not 2 */
    close(rig_connected(r, next, 3));
    rig_ask(r, next, 4, TARGET, r->port);
    assert_int_equal(rig_verdict(r, next, 4), NET_TOO_MANY);
    rig_wait(chan); /* the old channel is at its end */
    char byte;
    assert_int_equal(recv(chan, &byte, 1, 0), 0);
}

static void what_stands_at_a_new_gate_is_judged(void **state) {
    struct rig *r = *state;
    AUTO_FD chan = rig_attach(r, 1, TARGET ":443");
    stands(r, chan, 9, TARGET, 80);
    rig_expect(r, chan, WIRE_A_CLOSE);
    stands(r, chan, 10, TARGET, 443);
    rig_ask(r, chan, 11, TARGET, 80);
    assert_int_equal(rig_verdict(r, chan, 11), EACCES); /* 10 is let be */
}

/* SECURITY: the policy may have changed while there was no gate. */
static void what_stands_unlooked_at_is_not_a_names(void **state) {
    struct rig *r = *state;
    struct a_close m;
    struct err e;
    struct net_addr a;
    AUTO_FD chan = rig_attach(r, 1, "pypi.org:443");
    assert_true(net_addr_parse("203.0.113.7", 11, &a));
    for (uint32_t id = 1; id <= 2; id++) {
        a_stands_put(&r->out,
                     &(struct a_stands){.id = id,
                                        .port = 443,
                                        .address = {a.b, sizeof a.b},
                                        .rule = "",
                                        .name = "pypi.org",
                                        .check = id == 1 ? NET_CHECK_TLS : NET_CHECK_NONE});
        rig_send(r, chan);
    }
    rig_expect(r, chan, WIRE_A_CLOSE);
    assert_int_equal(a_close_get(&r->in, &m, &e), 0);
    assert_int_equal(m.id, 2);
}

static void ends(struct rig *r, int chan) {
    char byte;
    rig_wait(chan);
    assert_int_equal(recv(chan, &byte, 1, 0), 0);
    AUTO_FD other = rig_attach(r, 99, TARGET); /* others do not notice */
    close(rig_connected(r, other, 1));
}

static void is_lost(struct rig *r, uint64_t sandbox) {
    struct g_lost m;
    struct err e;
    server_hears(r, WIRE_G_LOST);
    assert_int_equal(g_lost_get(&r->in, &m, &e), 0);
    assert_int_equal(m.sandbox, sandbox);
}

static void what_no_init_says_ends_its_sandboxs_network_alone(void **state) {
    struct rig *r = *state;
    AUTO_FD a = rig_attach(r, 1, TARGET);
    a_ask_put(&r->out, &(struct a_ask){.id = 1, .port = 80, .address = {"four", 4}});
    rig_send(r, a);
    is_lost(r, 1);
    ends(r, a);
    AUTO_FD b = rig_attach(r, 2, TARGET);
    g_forget_put(&r->out, &(struct g_forget){.sandbox = 99});
    rig_send(r, b);
    ends(r, b);
    AUTO_FD c = rig_attach(r, 3, TARGET);
    close(rig_connected(r, c, 1));
    rig_ask(r, c, 1, TARGET, r->port);
    ends(r, c);
    AUTO_FD d = rig_attach(r, 4, TARGET);
    assert_int_equal(send(d, "\xff\xff\xff\xff nonsense", 13, 0), 13);
    ends(r, d);
}

static void a_forgotten_sandbox_has_no_channel(void **state) {
    struct rig *r = *state;
    char byte;
    AUTO_FD chan = rig_attach(r, 1, TARGET);
    g_forget_put(&r->out, &(struct g_forget){.sandbox = 1});
    rig_send(r, r->server);
    rig_wait(chan);
    assert_int_equal(recv(chan, &byte, 1, 0), 0);
}

static void open_connections_are_told_in_steps(void **state) {
    struct rig *r = *state;
    struct g_open m;
    struct err e;
    AUTO_FD chan = rig_attach(r, 1, TARGET);
    int fds[NET_OPEN_STEP + 1];
    for (uint32_t id = 0; id <= NET_OPEN_STEP; id++)
        fds[id] = rig_connected(r, chan, id);
    server_hears(r, WIRE_G_OPEN);
    assert_int_equal(g_open_get(&r->in, &m, &e), 0);
    assert_int_equal(m.connections, NET_OPEN_STEP);
    server_hears(r, WIRE_G_OPEN);
    assert_int_equal(g_open_get(&r->in, &m, &e), 0);
    assert_int_equal(m.connections, 2 * NET_OPEN_STEP);
    fd_close(&chan);
    server_hears(r, WIRE_G_OPEN);
    assert_int_equal(g_open_get(&r->in, &m, &e), 0);
    fd_close_all(fds, NET_OPEN_STEP + 1);
}

/* SECURITY: what it would be answered is memory of the gate. */
static void an_init_that_does_not_read_is_not_read(void **state) {
    struct rig *r = *state;
    struct err e;
    AUTO_FD chan = rig_attach(r, 1, "pypi.org");
    AUTO_FD other = rig_attach(r, 2, TARGET);
    assert_int_equal(fd_set_nonblock(chan, &e), 0);
    for (unsigned sent = 0, stuck = 0; stuck < 50;) {
        rig_prepare_ask(r, 1, "203.0.113.7", 80);
        enum wire_sent how = wire_send(chan, &r->out, &e);
        assert_int_not_equal(how, WIRE_FAILED);
        stuck = how == WIRE_AGAIN ? stuck + 1 : 0;
        assert_true(++sent < 10000); /* what two sockets hold, and little more */
        if (how == WIRE_AGAIN) {     /* another's answer: the gate has had a turn */
            rig_ask(r, other, 1, "203.0.113.7", 80);
            rig_verdict(r, other, 1);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_GATE(an_allowed_connect_brings_a_connected_socket),
        WITH_GATE(an_older_init_gets_the_socket_in_a_message_of_its_own),
        WITH_GATE(a_service_that_is_stopped_is_ended_by_its_warden),
        WITH_GATE(a_refused_connect_says_what_is_allowed_and_is_noted),
        WITH_GATE(what_the_outside_answers_is_told),
        WITH_GATE(the_hosts_own_addresses_are_shut_even_when_all_is_open),
        WITH_GATE(an_address_that_becomes_the_hosts_own_is_shut),
        WITH_GATE(what_is_this_host_by_its_routes_is_shut),
        WITH_GATE(another_policy_closes_what_it_does_not_allow),
        WITH_GATE(a_policy_is_in_force_when_what_it_closes_is_over),
        WITH_GATE(a_pending_connect_that_is_not_allowed_any_more_fails),
        WITH_GATE(attached_sandboxes_go_on_without_a_server),
        WITH_GATE(a_new_server_attaches_again_and_what_stands_counts),
        WITH_GATE(what_stands_at_a_new_gate_is_judged),
        WITH_GATE(what_stands_unlooked_at_is_not_a_names),
        WITH_GATE(what_no_init_says_ends_its_sandboxs_network_alone),
        WITH_GATE(a_forgotten_sandbox_has_no_channel),
        WITH_GATE(open_connections_are_told_in_steps),
        WITH_GATE(an_init_that_does_not_read_is_not_read),
    };
    if (!rig_enter())
        return 77; /* no namespaces here: skipped */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
