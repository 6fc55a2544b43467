/* net/judge, answers and bucket: what a policy says of a connect, a name, a hello. */

#include "net/judge.h"

#include "net/bucket.h"
#include "net/policy_json.h"

#include <errno.h>
#include <stdio.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void policy(const char *text, struct net_policy *ret) {
    struct err e;
    if (net_policy_from_text(text, strlen(text), NULL, "network", ret, &e) < 0)
        fail_msg("%s: %s", text, e.text);
}

static struct net_addr addr(const char *text) {
    struct net_addr a;
    assert_true(net_addr_parse(text, strlen(text), &a));
    return a;
}

/* www.pypi.org is at 198.51.100.7, files.example.org at .8, and both names are at .9; the host has
 * 192.168.1.5 and 203.0.113.5. */
static struct net_answers *told(void) {
    struct net_answers *a = net_answers_new();
    struct net_addr seven = addr("198.51.100.7"), eight = addr("198.51.100.8"),
                    nine = addr("198.51.100.9");
    net_answers_add(a, "www.pypi.org", &seven, 60, 1000);
    net_answers_add(a, "files.example.org", &eight, 60, 1000);
    net_answers_add(a, "www.pypi.org", &nine, 60, 1000);
    net_answers_add(a, "files.example.org", &nine, 60, 1000);
    return a;
}

static void connects_are_judged_in_order(void **state) {
    (void)state;
    static const struct {
        const char *policy, *address;
        uint16_t port;
        int errnum;
        enum net_check check;
        const char *rule;
    } cases[] = {
        {"none", "203.0.113.9", 443, ENETUNREACH, 0, "network:default-deny"},
        {"[]", "203.0.113.9", 443, EACCES, 0, "network:default-deny"},
        {"open", "203.0.113.9", 443, 0, 0, "network:open"},
        {"open", "10.0.0.1", 443, EACCES, 0, "network:closed-range"},
        {"open", "::ffff:10.0.0.1", 443, EACCES, 0, "network:closed-range"},
        {"open", "169.254.169.254", 80, EACCES, 0, "network:closed-range"},
        {"open", "203.0.113.5", 80, EACCES, 0, "network:closed-range"},
        {"0.0.0.0/0", "203.0.113.5", 80, EACCES, 0, "network:closed-range"},
        {"203.0.113.5:80", "203.0.113.5", 80, 0, 0, "203.0.113.5:80"},
        {"203.0.113.5:80", "203.0.113.5", 81, EACCES, 0, "network:closed-range"},
        {"0.0.0.0/0", "203.0.113.9", 80, 0, 0, "0.0.0.0/0"},
        {"0.0.0.0/0", "10.0.0.1", 80, EACCES, 0, "network:closed-range"},
        {"8.0.0.0/5", "10.0.0.1", 80, EACCES, 0, "network:closed-range"},
        {"10.0.0.0/8", "10.0.0.1", 80, 0, 0, "10.0.0.0/8"},
        {"10.0.0.0/8:443", "10.0.0.1", 80, EACCES, 0, "network:closed-range"},
        {"192.168.0.0/16", "192.168.1.5", 80, EACCES, 0, "network:closed-range"},
        {"192.168.0.0/16", "192.168.1.6", 80, 0, 0, "192.168.0.0/16"},
        {"192.168.1.5", "192.168.1.5", 80, 0, 0, "192.168.1.5"},
        {"224.0.0.0/3", "239.0.0.1", 80, EACCES, 0, "network:closed-range"},
        {"::/0", "203.0.113.9", 80, EACCES, 0, "network:default-deny"},
        {"{\"allow\": [\"10.0.0.0/8\"], \"deny\": [\"10.1.0.0/16\"]}", "10.1.0.1", 80, EACCES, 0,
         "network:deny 10.1.0.0/16"},
        {"{\"open\": true, \"deny\": [\"203.0.113.0/24\"]}", "203.0.113.9", 80, EACCES, 0,
         "network:deny 203.0.113.0/24"},
        {"{\"open\": true, \"deny\": [\"10.0.0.0/8\"]}", "10.0.0.1", 80, EACCES, 0,
         "network:closed-range"},
        {"{\"allow\": [\"*.pypi.org\"], \"deny\": [\"198.51.100.0/24\"]}", "198.51.100.7", 443,
         EACCES, 0, "network:deny 198.51.100.0/24"},
        {"*.pypi.org", "198.51.100.7", 443, 0, NET_CHECK_TLS, "*.pypi.org"},
        {"*.pypi.org", "198.51.100.7", 80, 0, NET_CHECK_HTTP, "*.pypi.org"},
        {"*.pypi.org", "198.51.100.7", 22, 0, NET_CHECK_NONE, "*.pypi.org"},
        {"*.pypi.org:443", "198.51.100.7", 22, EACCES, 0, "network:default-deny"},
        {"{\"allow\": [\"*.pypi.org\"], \"strict_tls\": false}", "198.51.100.7", 443, 0,
         NET_CHECK_NONE, "*.pypi.org"},
        {"*.pypi.org", "198.51.100.8", 443, EACCES, 0, "network:default-deny"},
        {"*.pypi.org:22 files.example.org:443", "198.51.100.9", 443, 0, NET_CHECK_TLS,
         "files.example.org:443"},
        {"*.pypi.org 198.51.100.7:443", "198.51.100.7", 443, 0, NET_CHECK_NONE, "198.51.100.7:443"},
        {"{\"open\": true, \"allow\": [\"*.pypi.org\"]}", "198.51.100.7", 443, 0, NET_CHECK_NONE,
         "*.pypi.org"},
        {"{\"refuse\": \"unreachable\"}", "203.0.113.9", 443, ENETUNREACH, 0,
         "network:default-deny"},
        {"{\"refuse\": \"unreachable\"}", "192.0.0.8", 443, ENETUNREACH, 0, "network:closed-range"},
    };
    struct net_addr own_list[] = {addr("192.168.1.5"), addr("203.0.113.5")};
    struct net_own own = {own_list, COUNT(own_list)};
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_NET_POLICY p = NET_POLICY_INIT;
        struct net_answers *a = told();
        struct net_addr address = addr(cases[i].address);
        struct net_verdict v;
        policy(cases[i].policy, &p);
        net_judge_connect(&p, a, &own, &address, cases[i].port, 2000, &v);
        if (v.errnum != cases[i].errnum || v.check != cases[i].check ||
            strcmp(v.rule, cases[i].rule) != 0)
            fail_msg("%s, %s port %u: %d, %s", cases[i].policy, cases[i].address, cases[i].port,
                     v.errnum, v.rule);
        assert_true(v.op[0] != '\0' && (v.errnum == 0) == (v.detail[0] == '\0'));
        net_answers_free(a);
    }
}

static void what_the_operator_denies_comes_first(void **state) {
    (void)state;
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    struct err e;
    struct net_verdict v;
    struct net_answers *a = told();
    struct net_addr address = addr("10.0.0.1");
    policy("10.0.0.0/8", &p);
    assert_int_equal(net_policy_deny_from_text("10.0.0.0/24", 11, "x", &p, &e), 0);
    net_judge_connect(&p, a, NULL, &address, 80, 2000, &v);
    assert_int_equal(v.errnum, EACCES);
    assert_string_equal(v.rule, "network:operator");
    assert_string_equal(v.detail, "the operator of this server denies 10.0.0.0/24");
    net_answers_free(a);
}

static void refusals_tell_what_may_be_reached_and_what_to_ask_for(void **state) {
    (void)state;
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    struct net_answers *a = told();
    struct net_verdict v;
    struct net_addr known = addr("198.51.100.7"), v6 = addr("2001:db8::1"),
                    closed = addr("10.0.0.1");
    policy("api.example.com:443 *.pypi.org:22", &p);
    net_judge_connect(&p, a, NULL, &known, 443, 2000, &v);
    assert_string_equal(v.op, "connect to www.pypi.org (198.51.100.7) port 443");
    assert_string_equal(v.detail, "this sandbox may reach: api.example.com:443, *.pypi.org:22; "
                                  "ask for www.pypi.org:443 to be allowed");
    assert_string_equal(v.name, "www.pypi.org");
    net_judge_connect(&p, a, NULL, &v6, 443, 2000, &v);
    assert_string_equal(v.op, "connect to 2001:db8::1 port 443");
    assert_non_null(strstr(v.detail, "ask for [2001:db8::1]:443 to be allowed"));
    net_judge_connect(&p, a, NULL, &closed, 443, 2000, &v);
    assert_string_equal(v.detail, "it lies in 10.0.0.0/8, which no name opens, but only a rule for "
                                  "addresses in it; ask for 10.0.0.1:443 to be allowed");
    net_judge_name(&p, "evil.example", &v);
    assert_string_equal(v.op, "look up the name evil.example");
    assert_non_null(strstr(v.detail, "ask for evil.example to be allowed"));
    net_answers_free(a);
}

static void a_long_policy_is_cut_in_words(void **state) {
    (void)state;
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    AUTO_BUF text = BUF_INIT;
    struct net_verdict v;
    struct net_addr a = addr("203.0.113.9");
    for (int i = 0; i < 200; i++)
        buf_addf(&text, "a-rather-long-name-of-a-host-%d.example.org:443 ", i);
    policy(text.data, &p);
    net_judge_again(&p, NULL, &a, 443, "", NET_CHECK_NONE, "", &v);
    assert_non_null(strstr(v.detail, " more; ask for 203.0.113.9:443 to be allowed"));
    assert_int_equal(v.errnum, EACCES);
}

static void names_are_judged(void **state) {
    (void)state;
    static const struct {
        const char *policy, *name;
        bool allowed, told;
        const char *rule;
    } cases[] = {
        {"none", "pypi.org", false, true, "network:default-deny"},
        {"open", "pypi.org", true, true, "network:open"},
        {"open", "9.100.51.198.in-addr.arpa", false, false, "network:default-deny"},
        {"open", "", false, true, "network:default-deny"},
        {"open", "a b", false, true, "network:default-deny"},
        {"pypi.org:443", "pypi.org", true, true, "pypi.org:443"},
        {"pypi.org:443", "PyPI.org.", true, true, "pypi.org:443"},
        {"pypi.org:443", "www.pypi.org", false, true, "network:default-deny"},
        {"*.pypi.org", "a.b.pypi.org", true, true, "*.pypi.org"},
        {"*.pypi.org", "a%b.pypi.org", false, true, "network:default-deny"},
        {"0.0.0.0/0", "pypi.org", false, true, "network:default-deny"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_NET_POLICY p = NET_POLICY_INIT;
        struct net_verdict v;
        policy(cases[i].policy, &p);
        net_judge_name(&p, cases[i].name, &v);
        if ((v.errnum == 0) != cases[i].allowed || strcmp(v.rule, cases[i].rule) != 0 ||
            (v.op[0] != '\0') != cases[i].told)
            fail_msg("%s, %s: %s", cases[i].policy, cases[i].name, v.rule);
    }
}

static void answers_in_closed_ranges_are_left_out(void **state) {
    (void)state;
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    struct net_addr own_list[] = {addr("203.0.113.5")};
    struct net_own own = {own_list, 1};
    static const struct {
        const char *address;
        bool good;
    } cases[] = {{"198.51.100.7", true}, {"10.0.0.1", false}, {"127.0.0.1", false},
                 {"203.0.113.5", false}, {"::1", false},      {"203.0.113.77", false},
                 {"2001:db8::1", true}};
    policy("{\"allow\": [\"pypi.org\", \"10.0.0.0/8\"], \"deny\": [\"203.0.113.64/26\"]}", &p);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_addr a = addr(cases[i].address);
        assert_int_equal(net_judge_answer(&p, &own, &a), cases[i].good);
    }
}

static void a_hello_has_to_say_an_allowed_name(void **state) {
    (void)state;
    static const struct {
        const char *name;
        bool allowed;
    } cases[] = {{"www.pypi.org", true},
                 {"WWW.pypi.org", true},
                 {"pypi.org", false},
                 {"files.example.org", false},
                 {"", false},
                 {"198.51.100.7", false}};
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    struct net_addr a = addr("198.51.100.7");
    policy("*.pypi.org:443 files.example.org:8443 198.51.100.9", &p);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_verdict v;
        net_judge_hello(&p, NET_CHECK_TLS, &a, 443, cases[i].name, &v);
        assert_int_equal(v.errnum == 0, cases[i].allowed);
        assert_string_equal(v.rule, cases[i].allowed ? "*.pypi.org:443" : "network:strict-tls");
    }
}

static void open_connections_are_judged_again(void **state) {
    (void)state;
    static const struct {
        const char *policy, *rule, *name;
        bool allowed;
    } cases[] = {
        {"*.pypi.org", "*.pypi.org", "www.pypi.org", true},
        {"www.pypi.org:443", "*.pypi.org", "www.pypi.org", true},
        {"www.pypi.org:80", "*.pypi.org", "www.pypi.org", false},
        {"none", "*.pypi.org", "www.pypi.org", false},
        {"open", "*.pypi.org", "www.pypi.org", true},
        {"*.pypi.org", "*.pypi.org", "", true},
        {"*.pypi.org:80", "*.pypi.org", "", false},
        {"other.org", "*.pypi.org", "", false},
        {"198.51.100.0/24", "*.pypi.org", "www.pypi.org", true},
        {"198.51.100.0/24", "", "", true},
        {"{\"allow\": [\"*.pypi.org\"], \"deny\": [\"198.51.100.7\"]}", "*.pypi.org",
         "www.pypi.org", false},
        {"open", "network:open", "", true},
        {"[]", "network:open", "", false},
    };
    struct net_addr a = addr("198.51.100.7");
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_NET_POLICY p = NET_POLICY_INIT;
        struct net_verdict v;
        policy(cases[i].policy, &p);
        net_judge_again(&p, NULL, &a, 443, cases[i].rule, NET_CHECK_TLS, cases[i].name, &v);
        if ((v.errnum == 0) != cases[i].allowed)
            fail_msg("%s: %s", cases[i].policy, v.rule);
    }
}

/* SECURITY: what was let without a look at its name stays only where no name is asked for. */
static void one_that_nobody_looked_at_is_judged_by_its_address(void **state) {
    (void)state;
    static const struct {
        const char *policy;
        bool allowed;
    } cases[] = {
        {"*.pypi.org:443", false},
        {"{\"allow\": [\"*.pypi.org\"], \"strict_tls\": false}", true},
        {"198.51.100.7:443", true},
        {"open", true},
    };
    struct net_addr a = addr("198.51.100.7");
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_NET_POLICY p = NET_POLICY_INIT;
        struct net_verdict v;
        policy(cases[i].policy, &p);
        net_judge_again(&p, NULL, &a, 443, "network:open", NET_CHECK_NONE, "www.pypi.org", &v);
        if ((v.errnum == 0) != cases[i].allowed)
            fail_msg("%s: %s", cases[i].policy, v.rule);
    }
}

/* ---- answers */

static bool is_known(struct net_answers *a, const struct net_policy *p, const struct net_addr *at,
                     uint64_t now_ms) {
    const char *name;
    return net_answers_find(a, p, at, 443, now_ms, &name) != NULL;
}

static void answers_are_forgotten_after_their_time(void **state) {
    (void)state;
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    struct net_answers *a = net_answers_new();
    struct net_addr at = addr("198.51.100.7");
    const uint64_t keep_ms = 60 * 1000 + NET_ANSWER_GRACE_MS;
    policy("pypi.org", &p);
    net_answers_add(a, "pypi.org", &at, 60, 0);
    assert_true(is_known(a, &p, &at, keep_ms - 1));
    /* That was a use. */
    assert_true(is_known(a, &p, &at, 2 * keep_ms - 2));
    assert_false(is_known(a, &p, &at, 3 * keep_ms));
    assert_int_equal(net_answers_count(a), 0);
    /* One that lives shorter than the one that was used before it. */
    struct net_addr other = addr("198.51.100.8");
    net_answers_add(a, "pypi.org", &at, 60, 0);
    net_answers_add(a, "pypi.org", &other, 0, 0);
    assert_false(is_known(a, &p, &other, NET_ANSWER_GRACE_MS));
    assert_true(is_known(a, &p, &at, NET_ANSWER_GRACE_MS));
    net_answers_free(a);
    a = net_answers_new();
    /* However long the upstream says. */
    net_answers_add(a, "pypi.org", &at, UINT32_MAX, 0);
    assert_false(is_known(a, &p, &at, NET_TTL_MAX * 1000 + NET_ANSWER_GRACE_MS));
    net_answers_free(a);
}

static void the_least_recently_used_answer_goes_first(void **state) {
    (void)state;
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    struct net_answers *a = net_answers_new();
    policy("*.org", &p);
    struct net_addr at = addr("198.51.0.0");
    for (unsigned i = 0; i < NET_ANSWERS; i++) {
        at.b[14] = (uint8_t)(i >> 8), at.b[15] = (uint8_t)i;
        net_answers_add(a, "x.org", &at, 60, i);
        net_answers_add(a, "x.org", &at, 60, i); /* the same again takes no place */
    }
    assert_int_equal(net_answers_count(a), NET_ANSWERS);
    struct net_addr first = addr("198.51.0.0"), second = addr("198.51.0.1"),
                    another = addr("203.0.113.1");
    assert_true(is_known(a, &p, &first, 2000));
    net_answers_add(a, "x.org", &another, 60, 2000);
    assert_int_equal(net_answers_count(a), NET_ANSWERS);
    assert_true(is_known(a, &p, &first, 2000) && is_known(a, &p, &another, 2000));
    assert_false(is_known(a, &p, &second, 2000));
    net_answers_free(a);
}

static void another_policy_forgets_what_it_does_not_allow(void **state) {
    (void)state;
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    struct net_answers *a = told();
    policy("files.example.org:22", &p);
    net_answers_prune(a, &p);
    assert_int_equal(net_answers_count(a), 2);
    net_policy_done(&p);
    net_answers_prune(a, &p);
    assert_int_equal(net_answers_count(a), 0);
    net_answers_free(a);
}

static void another_policy_is_compared_with_the_names_anew(void **state) {
    (void)state;
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    struct net_answers *a = told();
    struct net_addr nine = addr("198.51.100.9");
    const struct net_rule *r;
    const char *name;
    policy("x.org *.pypi.org:22 files.example.org:443 *.example.org:80", &p);
    net_answers_prune(a, &p);
    r = net_answers_find(a, &p, &nine, 443, 2000, &name);
    assert_ptr_equal(r, &p.allow[2]);
    assert_string_equal(name, "files.example.org");
    assert_ptr_equal(net_answers_find(a, &p, &nine, 80, 2000, &name), &p.allow[3]);
    assert_ptr_equal(net_answers_find(a, &p, &nine, 22, 2000, &name), &p.allow[1]);
    net_policy_done(&p);
    policy("www.pypi.org:443", &p);
    net_answers_prune(a, &p);
    assert_ptr_equal(net_answers_find(a, &p, &nine, 443, 2000, &name), &p.allow[0]);
    assert_string_equal(name, "www.pypi.org");
    assert_null(net_answers_find(a, &p, &nine, 22, 2000, &name));
    net_answers_free(a);
}

/* ---- rates */

static void a_bucket_gives_its_burst_and_then_its_rate(void **state) {
    (void)state;
    struct net_bucket b = NET_BUCKET(20, 100);
    uint64_t now_ms = 1ull << 40;
    for (int i = 0; i < 100; i++)
        assert_true(net_bucket_take(&b, now_ms));
    assert_false(net_bucket_take(&b, now_ms));
    assert_false(net_bucket_take(&b, now_ms + 49));
    assert_true(net_bucket_take(&b, now_ms + 50));
    assert_false(net_bucket_take(&b, now_ms + 50));
    int n = 0;
    while (net_bucket_take(&b, now_ms + 1000000))
        n++;
    assert_int_equal(n, 100);
    /* Asking while there is none costs nothing, and a clock that goes back gives nothing. */
    assert_false(net_bucket_take(&b, now_ms));
    assert_true(net_bucket_take(&b, now_ms + 1000050));
}

static void new_destinations_are_bounded_by_the_minute(void **state) {
    (void)state;
    static struct net_seen s;
    struct net_addr at = addr("198.51.100.7");
    for (uint16_t port = 1; port <= NET_DESTINATIONS; port++)
        assert_true(net_seen_add(&s, &at, port, 1000));
    assert_false(net_seen_add(&s, &at, 1000, 1000));
    assert_true(net_seen_add(&s, &at, 1, 30000));
    assert_false(net_seen_add(&s, &at, 1000, 60999));
    assert_true(net_seen_add(&s, &at, 1000, 61000));
    /* The one that was used meanwhile still is there. */
    for (unsigned port = 2000; port < 2000 + NET_DESTINATIONS - 2; port++)
        assert_true(net_seen_add(&s, &at, (uint16_t)port, 61000));
    assert_false(net_seen_add(&s, &at, 3000, 61000));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connects_are_judged_in_order),
        cmocka_unit_test(what_the_operator_denies_comes_first),
        cmocka_unit_test(refusals_tell_what_may_be_reached_and_what_to_ask_for),
        cmocka_unit_test(a_long_policy_is_cut_in_words),
        cmocka_unit_test(names_are_judged),
        cmocka_unit_test(answers_in_closed_ranges_are_left_out),
        cmocka_unit_test(a_hello_has_to_say_an_allowed_name),
        cmocka_unit_test(open_connections_are_judged_again),
        cmocka_unit_test(one_that_nobody_looked_at_is_judged_by_its_address),
        cmocka_unit_test(answers_are_forgotten_after_their_time),
        cmocka_unit_test(the_least_recently_used_answer_goes_first),
        cmocka_unit_test(another_policy_forgets_what_it_does_not_allow),
        cmocka_unit_test(another_policy_is_compared_with_the_names_anew),
        cmocka_unit_test(a_bucket_gives_its_burst_and_then_its_rate),
        cmocka_unit_test(new_destinations_are_bounded_by_the_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
