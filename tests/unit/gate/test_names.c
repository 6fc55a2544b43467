/* cloche-gate: names, asked of a name server that we are, an honest one and hostile ones. */

#include "gate_fixture.h"

#include "base/fd.h"
#include "net/dns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define CNAME 5

struct packet {
    uint8_t data[65536];
    size_t len;
    struct sockaddr_in from;
};

static struct packet query, answer;
static size_t asked; /* bytes of the answer's head and question */

static void add_u16(unsigned v) {
    answer.data[answer.len++] = (uint8_t)(v >> 8);
    answer.data[answer.len++] = (uint8_t)v;
}

static void add_name(const char *name) {
    while (*name) {
        size_t n = strcspn(name, ".");
        answer.data[answer.len++] = (uint8_t)n;
        memcpy(answer.data + answer.len, name, n);
        answer.len += n;
        name += n + (name[n] == '.');
    }
    answer.data[answer.len++] = 0;
}

/* Takes the next question, and begins an answer to it. */
static void question(struct rig *r, const char *name, unsigned type) {
    socklen_t size = sizeof query.from;
    rig_wait(r->dns);
    ssize_t n =
        recvfrom(r->dns, query.data, sizeof query.data, 0, (struct sockaddr *)&query.from, &size);
    assert_true(n > 12);
    query.len = (size_t)n;
    answer.len = 12;
    add_name(name);
    add_u16(type);
    add_u16(1);
    assert_true(query.len >= answer.len);
    assert_int_equal(strncasecmp((char *)query.data + 12, (char *)answer.data + 12, strlen(name)),
                     0);
    memcpy(answer.data + 12, query.data + 12, answer.len - 12); /* as it was asked */
    asked = answer.len;
    memcpy(answer.data, query.data, 2);
    memcpy(answer.data + 2, "\x81\x80\0\1\0\0\0\0\0\0", 10);
}

static void set_count(unsigned n) {
    answer.data[6] = (uint8_t)(n >> 8);
    answer.data[7] = (uint8_t)n;
}

static void add_record(const char *owner, unsigned type, unsigned ttl_s, const void *data,
                       size_t len) {
    add_name(owner);
    add_u16(type);
    add_u16(1);
    add_u16(0);
    add_u16(ttl_s);
    add_u16((unsigned)len);
    memcpy(answer.data + answer.len, data, len);
    answer.len += len;
    set_count((unsigned)(answer.data[6] << 8 | answer.data[7]) + 1);
}

static void add_address(const char *owner, const char *address, unsigned ttl_s) {
    struct net_addr a;
    uint8_t v4[4];
    assert_true(net_addr_parse(address, strlen(address), &a));
    if (!net_addr_is_v4(&a)) {
        add_record(owner, NET_DNS_AAAA, ttl_s, a.b, 16);
        return;
    }
    net_addr_v4(&a, v4);
    add_record(owner, NET_DNS_A, ttl_s, v4, 4);
}

static void add_alias(const char *owner, const char *target, unsigned ttl_s) {
    add_name(owner);
    add_u16(CNAME);
    add_u16(1);
    add_u16(0);
    add_u16(ttl_s);
    size_t at = answer.len;
    add_u16(0);
    add_name(target);
    answer.data[at] = (uint8_t)((answer.len - at - 2) >> 8);
    answer.data[at + 1] = (uint8_t)(answer.len - at - 2);
    set_count((unsigned)(answer.data[6] << 8 | answer.data[7]) + 1);
}

static void reply(struct rig *r) {
    assert_int_equal(sendto(r->dns, answer.data, answer.len, 0,
                            (const struct sockaddr *)&query.from, sizeof query.from),
                     answer.len);
}

/* Says that the answer is cut, and gives it when the question comes over TCP. */
static void reply_over_tcp(struct rig *r) {
    uint8_t cut[512], head[2], again[512];
    memcpy(cut, answer.data, asked);
    cut[2] |= 2;
    cut[6] = cut[7] = 0;
    assert_int_equal(
        sendto(r->dns, cut, asked, 0, (const struct sockaddr *)&query.from, sizeof query.from),
        asked);
    rig_wait(r->dns_tcp);
    AUTO_FD fd = accept4(r->dns_tcp, NULL, NULL, SOCK_CLOEXEC);
    assert_int_equal(recv(fd, head, 2, MSG_WAITALL), 2);
    size_t n = (size_t)(head[0] << 8 | head[1]);
    assert_true(n <= sizeof again);
    assert_int_equal(recv(fd, again, n, MSG_WAITALL), n);
    memcpy(answer.data, again, 2);
    head[0] = (uint8_t)(answer.len >> 8);
    head[1] = (uint8_t)answer.len;
    assert_int_equal(send(fd, head, 2, MSG_NOSIGNAL), 2);
    assert_int_equal(send(fd, answer.data, answer.len, MSG_NOSIGNAL), answer.len);
    rig_wait(fd); /* it has read all, and closes */
}

/* What the sandbox is told: as "rcode ttl address address …". */
static const char *named(struct rig *r, int chan, uint32_t id) {
    static char text[2048];
    struct a_named m;
    struct err e;
    char address[NET_ADDR_TEXT];
    rig_expect(r, chan, WIRE_A_NAMED);
    assert_int_equal(a_named_get(&r->in, &m, &e), 0);
    assert_int_equal(m.id, id);
    int n = snprintf(text, sizeof text, "%u %u", m.rcode, m.ttl);
    for (size_t at = 0; at < m.addresses.len; at += 16) {
        struct net_addr a;
        memcpy(a.b, (const char *)m.addresses.data + at, 16);
        n += snprintf(text + n, sizeof text - (size_t)n, " %s", net_addr_text(&a, address));
    }
    return text;
}

static uint32_t verdict(struct rig *r, int chan, const char *address, uint16_t port) {
    static uint32_t id;
    struct a_verdict m;
    struct err e;
    rig_ask(r, chan, ++id, address, port);
    rig_expect(r, chan, WIRE_A_VERDICT);
    assert_int_equal(a_verdict_get(&r->in, &m, &e), 0);
    uint32_t errnum = m.errnum;
    if (errnum == 0 && m.socket < 0)
        rig_expect(r, chan, WIRE_A_RESULT);
    return errnum;
}

static void an_address_that_was_told_may_be_connected_to_as_the_rule_says(void **state) {
    struct rig *r = *state;
    AUTO_FD chan = rig_attach(r, 1, "pypi.org:443");
    assert_int_equal(verdict(r, chan, "203.0.113.7", 443), EACCES);
    rig_name(r, chan, 1, "PyPI.org", NET_DNS_A);
    question(r, "pypi.org", NET_DNS_A);
    add_address("pypi.org", "203.0.113.7", 60);
    add_address("pypi.org", "203.0.113.8", 90);
    reply(r);
    assert_string_equal(named(r, chan, 1), "0 60 203.0.113.7 203.0.113.8");
    assert_int_equal(verdict(r, chan, "203.0.113.7", 443), 0);
    assert_int_equal(verdict(r, chan, "203.0.113.8", 443), 0);
    assert_int_equal(verdict(r, chan, "203.0.113.7", 80), EACCES);
    AUTO_FD other = rig_attach(r, 2, "pypi.org:443");
    assert_int_equal(verdict(r, other, "203.0.113.7", 443), EACCES); /* was not told it */
}

static void a_name_that_is_not_allowed_is_not_asked_for(void **state) {
    struct rig *r = *state;
    struct a_named m;
    struct err e;
    AUTO_FD chan = rig_attach(r, 1, "pypi.org");
    rig_name(r, chan, 1, "evil.example", NET_DNS_A);
    rig_expect(r, chan, WIRE_A_NAMED);
    assert_int_equal(a_named_get(&r->in, &m, &e), 0);
    assert_int_equal(m.rcode, NET_RCODE_NO_NAME);
    assert_non_null(strstr(m.op, "evil.example"));
    assert_non_null(strstr(m.detail, "pypi.org"));
    rig_name(r, chan, 2, "no\\name", NET_DNS_A);
    assert_string_equal(named(r, chan, 2), "3 0");
    rig_name(r, chan, 3, "pypi.org", 16); /* TXT */
    assert_string_equal(named(r, chan, 3), "0 0");
    assert_true(rig_is_quiet(r->dns));
}

static void a_refused_name_is_the_sentinel_where_that_is_wished(void **state) {
    struct rig *r = *state;
    AUTO_FD chan = rig_attach(r, 1, "{\"allow\": [\"pypi.org\"], \"refuse\": \"unreachable\"}");
    rig_name(r, chan, 1, "evil.example", NET_DNS_A);
    assert_string_equal(named(r, chan, 1), "0 5 " NET_SENTINEL_4);
    rig_name(r, chan, 2, "evil.example", NET_DNS_AAAA);
    assert_string_equal(named(r, chan, 2), "0 5 " NET_SENTINEL_6);
    assert_int_equal(verdict(r, chan, NET_SENTINEL_4, 443), ENETUNREACH);
}

static void closed_addresses_are_left_out(void **state) {
    struct rig *r = *state;
    AUTO_FD chan = rig_attach(r, 1, "rebind.example");
    rig_name(r, chan, 1, "rebind.example", NET_DNS_A);
    question(r, "rebind.example", NET_DNS_A);
    add_address("rebind.example", "169.254.169.254", 60);
    add_address("rebind.example", "203.0.113.7", 60);
    add_address("rebind.example", "127.0.0.1", 60);
    add_address("rebind.example", TARGET, 60); /* the host's own */
    reply(r);
    assert_string_equal(named(r, chan, 1), "0 60 203.0.113.7");
    assert_int_equal(verdict(r, chan, "169.254.169.254", 80), EACCES);
    assert_int_equal(verdict(r, chan, TARGET, 80), EACCES);
}

static void an_answer_is_asked_for_once(void **state) {
    struct rig *r = *state;
    AUTO_FD one = rig_attach(r, 1, "pypi.org");
    AUTO_FD two = rig_attach(r, 2, "pypi.org");
    rig_name(r, one, 1, "pypi.org", NET_DNS_A);
    question(r, "pypi.org", NET_DNS_A);
    rig_name(r, two, 2, "pypi.org", NET_DNS_A); /* waits for the same */
    rig_name(r, two, 3, "other.example", NET_DNS_A);
    assert_string_equal(named(r, two, 3), "3 5"); /* so 2 was heard */
    add_address("pypi.org", "203.0.113.7", 200);
    reply(r);
    assert_string_equal(named(r, one, 1), "0 200 203.0.113.7");
    assert_string_equal(named(r, two, 2), "0 200 203.0.113.7");
    rig_name(r, two, 4, "pypi.org", NET_DNS_A);
    assert_non_null(strstr(named(r, two, 4), "203.0.113.7"));
    assert_true(rig_is_quiet(r->dns));
    assert_int_equal(verdict(r, two, "203.0.113.7", 80), 0);
}

static void aliases_are_followed_by_name(void **state) {
    struct rig *r = *state;
    AUTO_FD chan = rig_attach(r, 1, "pypi.org");
    rig_name(r, chan, 1, "pypi.org", NET_DNS_A);
    question(r, "pypi.org", NET_DNS_A);
    add_address("b.cdn.example", "203.0.113.7", 60); /* in any order */
    add_alias("a.cdn.example", "B.cdn.example", 20);
    add_address("pypi.example", "203.0.113.66", 60); /* of another name */
    add_alias("PYPI.org", "a.cdn.example", 100);
    reply(r);
    assert_string_equal(named(r, chan, 1), "0 20 203.0.113.7");
    assert_int_equal(verdict(r, chan, "203.0.113.66", 80), EACCES);
}

static void an_upstream_that_loops_or_floods_is_cut_short(void **state) {
    struct rig *r = *state;
    AUTO_FD chan = rig_attach(r, 1, "loop.example, many.example, cut.example, wild.example");
    rig_name(r, chan, 1, "loop.example", NET_DNS_A);
    question(r, "loop.example", NET_DNS_A);
    add_alias("loop.example", "pool.example", 60);
    add_alias("pool.example", "loop.example", 60);
    reply(r);
    assert_string_equal(named(r, chan, 1), "0 30");

    rig_name(r, chan, 2, "many.example", NET_DNS_A);
    question(r, "many.example", NET_DNS_A);
    for (unsigned i = 0; answer.len < 60000; i++) {
        char address[32];
        snprintf(address, sizeof address, "203.0.%u.%u", 113 + i / 250, i % 250 + 1);
        add_address("many.example", address, 60);
    }
    reply_over_tcp(r);
    const char *all = named(r, chan, 2);
    unsigned n = 0;
    for (const char *at = all; (at = strstr(at, " 203.")); at++)
        n++;
    assert_int_equal(n, NET_ADDRESSES);

    rig_name(r, chan, 3, "cut.example", NET_DNS_A);
    question(r, "cut.example", NET_DNS_A);
    add_address("cut.example", "203.0.113.7", 60);
    answer.len -= 2;
    reply(r);
    assert_null(strstr(named(r, chan, 3), "203"));
}

static void another_id_or_question_is_no_answer(void **state) {
    struct rig *r = *state;
    AUTO_FD chan = rig_attach(r, 1, "pypi.org");
    rig_name(r, chan, 1, "pypi.org", NET_DNS_A);
    question(r, "pypi.org", NET_DNS_A);
    add_address("pypi.org", "203.0.113.66", 60);
    answer.data[1] ^= 1;
    reply(r);
    answer.data[1] ^= 1;
    answer.data[13] ^= 1; /* the question is for another name */
    reply(r);
    answer.data[13] ^= 1;
    answer.len = asked;
    set_count(0);
    add_address("pypi.org", "203.0.113.7", 60);
    reply(r);
    assert_string_equal(named(r, chan, 1), "0 60 203.0.113.7");
}

static void an_answer_that_does_not_repeat_the_letters_is_forged(void **state) {
    struct rig *r = *state;
    char name[NET_NAME_SIZE];
    AUTO_FD chan = rig_attach(r, 1, "*.example");
    memset(name, 'a', 60); /* of one case by chance: not before the end of the world */
    snprintf(name + 60, sizeof name - 60, ".example");
    rig_name(r, chan, 1, name, NET_DNS_A);
    question(r, name, NET_DNS_A);
    for (size_t i = 13; i < 13 + 60; i++)
        answer.data[i] = 'a';
    add_address(name, "203.0.113.66", 60);
    reply(r);
    assert_string_equal(named(r, chan, 1), "2 0");
}

static void what_does_not_exist_is_not_there_for_a_while(void **state) {
    struct rig *r = *state;
    AUTO_FD chan = rig_attach(r, 1, "*.example");
    rig_name(r, chan, 1, "no.example", NET_DNS_A);
    question(r, "no.example", NET_DNS_A);
    answer.data[3] |= 3;
    reply(r);
    assert_string_equal(named(r, chan, 1), "3 30");
    rig_name(r, chan, 2, "no.example", NET_DNS_A);
    assert_string_equal(named(r, chan, 2), "3 30");
    assert_true(rig_is_quiet(r->dns));
}

static void a_policy_that_changes_meanwhile_decides(void **state) {
    struct rig *r = *state;
    AUTO_FD chan = rig_attach(r, 1, "pypi.org");
    rig_name(r, chan, 1, "pypi.org", NET_DNS_A);
    question(r, "pypi.org", NET_DNS_A);
    AUTO_FD policy = rig_policy_fd("other.example");
    g_policy_put(&r->out, &(struct g_policy){.sandbox = 1, .serial = 1, .policy = policy});
    rig_send(r, r->server);
    rig_expect(r, chan, WIRE_A_LIMITS);
    add_address("pypi.org", "203.0.113.7", 60);
    reply(r);
    assert_string_equal(named(r, chan, 1), "3 5");
}

static void a_rule_that_goes_takes_its_answers_along(void **state) {
    struct rig *r = *state;
    AUTO_FD chan = rig_attach(r, 1, "pypi.org");
    rig_name(r, chan, 1, "pypi.org", NET_DNS_A);
    question(r, "pypi.org", NET_DNS_A);
    add_address("pypi.org", "203.0.113.7", 60);
    reply(r);
    named(r, chan, 1);
    for (unsigned i = 0; i < 2; i++) {
        AUTO_FD policy = rig_policy_fd(i == 0 ? "other.example" : "pypi.org");
        g_policy_put(&r->out, &(struct g_policy){.sandbox = 1, .serial = i, .policy = policy});
        rig_send(r, r->server);
        rig_expect(r, chan, WIRE_A_LIMITS);
    }
    assert_int_equal(verdict(r, chan, "203.0.113.7", 443), EACCES); /* has to be asked for again */
}

static void too_many_questions_fail_at_once(void **state) {
    struct rig *r = *state;
    char name[64];
    AUTO_FD chan = rig_attach(r, 1, "*.example");
    for (uint32_t i = 0; i < NET_QUESTIONS; i++) {
        snprintf(name, sizeof name, "n%u.example", i);
        rig_name(r, chan, i, name, NET_DNS_A);
        question(r, name, NET_DNS_A);
    }
    rig_name(r, chan, 1000, "more.example", NET_DNS_A);
    assert_string_equal(named(r, chan, 1000), "2 0");
    AUTO_FD other = rig_attach(r, 2, "*.example");
    rig_name(r, other, 1, "more.example", NET_DNS_A);
    question(r, "more.example", NET_DNS_A);
    add_address("more.example", "203.0.113.7", 60);
    reply(r);
    assert_string_equal(named(r, other, 1), "0 60 203.0.113.7");
}

static void without_a_route_there_is_no_address_of_ipv6(void **state) {
    struct rig *r = *state;
    AUTO_FD chan = rig_attach(r, 1, "pypi.org");
    rig_name(r, chan, 1, "pypi.org", NET_DNS_AAAA);
    assert_string_equal(named(r, chan, 1), "0 10");
    assert_true(rig_is_quiet(r->dns));
}

static void other_name_servers_come_with_the_configuration(void **state) {
    struct rig *r = *state;
    static const char resolv[] =
        "# a comment\nsearch x\nnameserver 127.0.0.77\nnameserver nonsense\n";
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(53)};
    struct err e;
    AUTO_FD config = -1;
    AUTO_FD file = -1;
    AUTO_FD chan = rig_attach(r, 1, "pypi.org");
    rig_name(r, chan, 1, "pypi.org", NET_DNS_A);
    question(r, "pypi.org", NET_DNS_A); /* stays without an answer */
    rig_pack_config("", &config);
    assert_int_equal(memfd_of("resolv", resolv, sizeof resolv - 1, &file, &e), 0);
    close(r->dns);
    r->dns = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, "127.0.0.77", &a.sin_addr);
    assert_int_equal(bind(r->dns, (struct sockaddr *)&a, sizeof a), 0);
    g_config_put(&r->out, &(struct g_config){.config = config, .resolv = file});
    rig_send(r, r->warden);
    assert_string_equal(named(r, chan, 1), "2 0");
    rig_name(r, chan, 2, "pypi.org", NET_DNS_A);
    question(r, "pypi.org", NET_DNS_A);
    add_address("pypi.org", "203.0.113.7", 60);
    reply(r);
    assert_string_equal(named(r, chan, 2), "0 60 203.0.113.7");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_GATE(an_address_that_was_told_may_be_connected_to_as_the_rule_says),
        WITH_GATE(a_name_that_is_not_allowed_is_not_asked_for),
        WITH_GATE(a_refused_name_is_the_sentinel_where_that_is_wished),
        WITH_GATE(closed_addresses_are_left_out),
        WITH_GATE(an_answer_is_asked_for_once),
        WITH_GATE(aliases_are_followed_by_name),
        WITH_GATE(an_upstream_that_loops_or_floods_is_cut_short),
        WITH_GATE(another_id_or_question_is_no_answer),
        WITH_GATE(an_answer_that_does_not_repeat_the_letters_is_forged),
        WITH_GATE(what_does_not_exist_is_not_there_for_a_while),
        WITH_GATE(a_policy_that_changes_meanwhile_decides),
        WITH_GATE(a_rule_that_goes_takes_its_answers_along),
        WITH_GATE(too_many_questions_fail_at_once),
        WITH_GATE(without_a_route_there_is_no_address_of_ipv6),
        WITH_GATE(other_name_servers_come_with_the_configuration),
    };
    if (!rig_enter())
        return 77; /* no namespaces here: skipped */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
