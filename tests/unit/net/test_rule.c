/* net/addr and net/rule: addresses, ranges and rules as users write them. */

#include "net/rule.h"

#include <netinet/in.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static struct net_addr addr(const char *text) {
    struct net_addr a;
    assert_true(net_addr_parse(text, strlen(text), &a));
    return a;
}

static void addresses_have_one_form(void **state) {
    (void)state;
    static const struct {
        const char *text, *again; /* NULL: it is none */
    } cases[] = {
        {"198.51.100.7", "198.51.100.7"},
        {"::ffff:198.51.100.7", "198.51.100.7"},
        {"::ffff:c633:6407", "198.51.100.7"},
        {"2001:DB8:0::1", "2001:db8::1"},
        {"::", "::"},
        {"198.51.100", NULL},
        {"0x7f.0.0.1", NULL},
        {"010.0.0.1", NULL},
        {"3325256711", NULL},
        {"198.51.100.7 ", NULL},
        {"fe80::1%lo", NULL},
        {"[2001:db8::1]", NULL},
        {"", NULL},
        {"2001:db8:1111:1111:1111:1111:1111:11112222222222222222", NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_addr a;
        char text[NET_ADDR_TEXT];
        bool good = net_addr_parse(cases[i].text, strlen(cases[i].text), &a);
        assert_int_equal(good, cases[i].again != NULL);
        if (good)
            assert_string_equal(net_addr_text(&a, text), cases[i].again);
    }
}

static void socket_addresses_go_both_ways(void **state) {
    (void)state;
    static const char *const texts[] = {"198.51.100.7", "2001:db8::1"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct sockaddr_storage ss;
        struct net_addr in = addr(texts[i]), out;
        uint16_t port;
        socklen_t len = net_addr_to(&in, 443, &ss);
        assert_int_equal(ss.ss_family, i == 0 ? AF_INET : AF_INET6);
        assert_true(net_addr_from(&ss, len, &out, &port));
        assert_true(net_addr_same(&in, &out));
        assert_int_equal(port, 443);
        for (size_t cut = 0; cut < (i == 0 ? len : 24u); cut++)
            assert_false(net_addr_from(&ss, cut, &out, &port));
    }
    /* One of IPv4 in a socket of IPv6, and a family that is none. */
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    struct net_addr mapped = addr("::ffff:10.0.0.1"), out;
    uint16_t port;
    memcpy(&in6.sin6_addr, mapped.b, 16);
    assert_true(net_addr_from(&in6, sizeof in6, &out, &port));
    assert_true(net_addr_is_v4(&out));
    in6.sin6_family = AF_UNIX;
    assert_false(net_addr_from(&in6, sizeof in6, &out, &port));
}

static void ranges_are_read_strictly(void **state) {
    (void)state;
    static const struct {
        const char *text, *again;
    } cases[] = {
        {"10.0.0.0/8", "10.0.0.0/8"},
        {"10.0.0.0/32", "10.0.0.0"},
        {"0.0.0.0/0", "0.0.0.0/0"},
        {"2001:db8::/32", "2001:db8::/32"},
        {"::/0", "::/0"},
        {"10.0.0.1/8", NULL},
        {"10.0.0.0/33", NULL},
        {"10.0.0.0/", NULL},
        {"10.0.0.0/08", NULL},
        {"10.0.0.0/+8", NULL},
        {"10.0.0.0/8/8", NULL},
        {"10/8", NULL},
        {"2001:db8::/129", NULL},
        {"2001:db8::1/32", NULL},
        {"::ffff:10.0.0.0/104", NULL},
        {"/8", NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_cidr c;
        char text[NET_CIDR_TEXT];
        const char *why = net_cidr_parse(cases[i].text, strlen(cases[i].text), &c);
        assert_int_equal(why == NULL, cases[i].again != NULL);
        if (why == NULL)
            assert_string_equal(net_cidr_text(&c, text), cases[i].again);
    }
}

static void ranges_hold_what_lies_in_them(void **state) {
    (void)state;
    static const struct {
        const char *range, *address;
        bool has;
    } cases[] = {
        {"10.0.0.0/8", "10.255.255.255", true}, {"10.0.0.0/8", "11.0.0.0", false},
        {"10.0.0.0/9", "10.127.0.1", true},     {"10.0.0.0/9", "10.128.0.0", false},
        {"0.0.0.0/0", "203.0.113.1", true},     {"0.0.0.0/0", "2001:db8::1", false},
        {"::/0", "2001:db8::1", true},          {"::/0", "203.0.113.1", false},
        {"2001:db8::1", "2001:db8::1", true},   {"2001:db8::1", "2001:db8::2", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_cidr c;
        struct net_addr a = addr(cases[i].address);
        assert_null(net_cidr_parse(cases[i].range, strlen(cases[i].range), &c));
        assert_int_equal(net_cidr_has(&c, &a), cases[i].has);
    }
}

static void special_addresses_are_closed(void **state) {
    (void)state;
    static const struct {
        const char *address, *range; /* NULL: it is open */
    } cases[] = {
        {"0.0.0.0", "0.0.0.0/8"},
        {"10.1.2.3", "10.0.0.0/8"},
        {"100.64.0.1", "100.64.0.0/10"},
        {"100.128.0.0", NULL},
        {"127.0.0.1", "127.0.0.0/8"},
        {"168.63.129.15", NULL},
        {"168.63.129.16", "168.63.129.16"},
        {"169.254.169.254", "169.254.0.0/16"},
        {"172.15.255.255", NULL},
        {"172.16.0.0", "172.16.0.0/12"},
        {"172.32.0.0", NULL},
        {"192.0.0.8", "192.0.0.0/24"},
        {"192.0.2.1", NULL},
        {"192.168.1.1", "192.168.0.0/16"},
        {"198.18.0.1", "198.18.0.0/15"},
        {"198.20.0.0", NULL},
        {"198.51.100.7", NULL},
        {"203.0.113.9", NULL},
        {"223.255.255.255", NULL},
        {"224.0.0.1", "224.0.0.0/3"},
        {"255.255.255.255", "224.0.0.0/3"},
        {"::", "::/96"},
        {"::1", "::/96"},
        {"::a00:1", "::/96"},
        {"::ffff:10.0.0.1", "10.0.0.0/8"},
        {"::ffff:0:a00:1", "::ffff:0:0:0/96"},
        {"64:ff9b::a00:1", "64:ff9b::/96"},
        {"64:ff9b:1::1", "64:ff9b:1::/48"},
        {"100::1", "100::/64"},
        {"2001::1", "2001::/32"},
        {"2001:1::1", NULL},
        {"2001:db8::1", NULL},
        {"2002:a00:1::", "2002::/16"},
        {"2606:4700::1111", NULL},
        {"fd00::15", "fc00::/7"},
        {"fe80::1", "fe80::/10"},
        {"fec0::1", "fec0::/10"},
        {"ff02::1", "ff00::/8"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_addr a = addr(cases[i].address);
        char text[NET_CIDR_TEXT];
        const struct net_cidr *c = net_addr_closed(&a);
        if (cases[i].range == NULL) {
            assert_null(c);
            continue;
        }
        assert_non_null(c);
        assert_string_equal(net_cidr_text(c, text), cases[i].range);
        assert_true(net_cidr_is_good(c) && net_cidr_is_closed(c));
    }
    struct net_addr v4 = net_sentinel(false), v6 = net_sentinel(true);
    assert_true(net_addr_is_sentinel(&v4) && net_addr_closed(&v4) != NULL && net_addr_is_v4(&v4));
    assert_true(net_addr_is_sentinel(&v6) && net_addr_closed(&v6) != NULL && !net_addr_is_v4(&v6));
}

static void good_rules_come_back_in_one_form(void **state) {
    (void)state;
    static const struct {
        const char *text, *again;
    } cases[] = {
        {"pypi.org", "pypi.org"},
        {"PyPI.Org.", "pypi.org"},
        {"pypi.org:443", "pypi.org:443"},
        {"*.example.org:80,443,8000-8010", "*.example.org:80,443,8000-8010"},
        {"*.com", "*.com"},
        {"db", "db"},
        {"_dmarc.xn--mnchen-3ya.de", "_dmarc.xn--mnchen-3ya.de"},
        {"10.1.0.0/16", "10.1.0.0/16"},
        {"10.1.0.0/16:5432", "10.1.0.0/16:5432"},
        {"203.0.113.9:22", "203.0.113.9:22"},
        {"2001:db8::/32", "2001:db8::/32"},
        {"2001:db8::1:443", "2001:db8::1:443"},
        {"[2001:db8::1]:443", "[2001:db8::1]:443"},
        {"[2001:db8::/32]:443-443", "[2001:db8::/32]:443"},
        {"[2001:db8::1]", "2001:db8::1"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_rule r, again;
        struct err e;
        char text[NET_RULE_TEXT], word[NET_WORD_SIZE];
        assert_int_equal(net_rule_parse(cases[i].text, strlen(cases[i].text), &r, &e), 0);
        assert_true(net_rule_is_good(&r));
        assert_string_equal(net_rule_text(&r, text), cases[i].again);
        assert_string_equal(net_rule_word(&r, word), cases[i].again);
        assert_int_equal(net_rule_parse(text, strlen(text), &again, &e), 0);
    }
}

static void bad_rules_say_why(void **state) {
    (void)state;
    static const struct {
        const char *text, *why; /* a piece of it */
    } cases[] = {
        {"", "empty"},
        {".", "two dots"},
        {"*", "say \"open\""},
        {"OPEN", "stands alone"},
        {"none.", "stands alone"},
        {"*.", "empty"},
        {"*pypi.org", "'*' stands first"},
        {"a.*.org", "'*' stands first"},
        {"*.*.org", "'*' stands first"},
        {"pypi..org", "two dots"},
        {".pypi.org", "two dots"},
        {"pypi.org..", "two dots"},
        {"-x.org", "'-'"},
        {"x-.org", "'-'"},
        {"m\xc3\xbcnchen.de", "xn--"},
        {"pypi.org ", "letters"},
        {"https://pypi.org", "not a URL"},
        {"pypi.org/simple", "no path"},
        {"user@pypi.org", "letters"},
        {"pypi.org:", "a port is"},
        {"pypi.org:0", "a port is"},
        {"pypi.org:65536", "a port is"},
        {"pypi.org:https", "a port is"},
        {"pypi.org:80,", "a port is"},
        {"pypi.org:80-", "a port is"},
        {"pypi.org:90-80", "larger"},
        {"pypi.org:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "more than 16"},
        {"10.0.0.1/8", "must be 0"},
        {"10.0.0.0/40", "32 bits"},
        {"300.1.2.3", "ends in a number"},
        {"1.2.3", "ends in a number"},
        {"0x7f000001", "ends in a number"},
        {"127.0.0.1", "needs no rule"},
        {"::1", "needs no rule"},
        {"[2001:db8::1", "']' is missing"},
        {"[2001:db8::1]443", "stands ':'"},
        {"[203.0.113.9]:443", "in brackets"},
        {"[]:443", "in brackets"},
        {"2001:db8::/32:443", "'/'"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_rule r;
        struct err e = {0};
        assert_int_equal(net_rule_parse(cases[i].text, strlen(cases[i].text), &r, &e), -1);
        assert_string_equal(e.kind, "network_rule_invalid");
        if (strstr(e.text, cases[i].why) == NULL)
            fail_msg("%s: %s", cases[i].text, e.text);
    }
    struct net_rule r;
    struct err e;
    assert_int_equal(net_rule_parse("a\0.org", 6, &r, &e), -1);
    char longest[300];
    memset(longest, 'a', sizeof longest);
    for (size_t i = 60; i < sizeof longest; i += 60)
        longest[i] = '.';
    assert_int_equal(net_rule_parse(longest, 253, &r, &e), 0);
    assert_int_equal(net_rule_parse(longest, 254, &r, &e), -1);
    memset(longest, 'a', 64);
    assert_int_equal(net_rule_parse(longest, 253, &r, &e), -1);
}

static struct net_rule rule(const char *text) {
    struct net_rule r;
    struct err e;
    assert_int_equal(net_rule_parse(text, strlen(text), &r, &e), 0);
    return r;
}

static void names_are_matched_by_labels(void **state) {
    (void)state;
    static const struct {
        const char *rule, *name;
        bool has;
    } cases[] = {
        {"pypi.org", "pypi.org", true},
        {"pypi.org", "www.pypi.org", false},
        {"pypi.org", "notpypi.org", false},
        {"*.pypi.org", "pypi.org", false},
        {"*.pypi.org", "www.pypi.org", true},
        {"*.pypi.org", "a.b.pypi.org", true},
        {"*.pypi.org", "notpypi.org", false},
        {"*.pypi.org", ".pypi.org", false},
        {"*.pypi.org", "pypi.org.evil.example", false},
        {"203.0.113.9", "203.0.113.9", false},
        {"pypi.org", "", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_rule r = rule(cases[i].rule);
        assert_int_equal(net_rule_has_name(&r, cases[i].name), cases[i].has);
    }
}

static void rules_cover_rules(void **state) {
    (void)state;
    static const struct {
        const char *outer, *inner;
        bool covers;
    } cases[] = {
        {"pypi.org", "pypi.org", true},         {"*.org", "pypi.org", true},
        {"*.org", "*.pypi.org", true},          {"*.pypi.org", "*.pypi.org", true},
        {"*.pypi.org", "*.org", false},         {"*.pypi.org", "pypi.org", false},
        {"pypi.org", "*.pypi.org", false},      {"10.0.0.0/8", "10.1.0.0/16", true},
        {"10.1.0.0/16", "10.0.0.0/8", false},   {"0.0.0.0/0", "pypi.org", false},
        {"::/0", "10.0.0.0/8", false},          {"*.org", "10.0.0.0/8", false},
        {"2001:db8::/32", "2001:db8::1", true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_rule outer = rule(cases[i].outer), inner = rule(cases[i].inner);
        assert_int_equal(net_rule_covers(&outer, &inner), cases[i].covers);
    }
}

static void wildcards_over_everybody_are_told(void **state) {
    (void)state;
    static const struct {
        const char *rule;
        bool broad;
    } cases[] = {{"*.com", true},       {"*.co.uk", true},       {"*.uk", true},
                 {"*.pypi.org", false}, {"*.example.uk", false}, {"com", false}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_rule r = rule(cases[i].rule);
        assert_int_equal(net_rule_is_broad(&r), cases[i].broad);
    }
}

static void a_word_for_a_long_rule_keeps_its_ends(void **state) {
    (void)state;
    char text[254], word[NET_WORD_SIZE];
    memset(text, 'a', sizeof text);
    for (size_t i = 50; i < 240; i += 50)
        text[i] = '.';
    memcpy(text + 236, ".example.org:443", 17);
    struct net_rule r = rule(text);
    assert_int_equal(strlen(net_rule_word(&r, word)), NET_WORD_SIZE - 1);
    assert_non_null(strstr(word, "aaa..."));
    assert_string_equal(word + strlen(word) - 16, ".example.org:443");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_have_one_form),
        cmocka_unit_test(socket_addresses_go_both_ways),
        cmocka_unit_test(ranges_are_read_strictly),
        cmocka_unit_test(ranges_hold_what_lies_in_them),
        cmocka_unit_test(special_addresses_are_closed),
        cmocka_unit_test(good_rules_come_back_in_one_form),
        cmocka_unit_test(bad_rules_say_why),
        cmocka_unit_test(names_are_matched_by_labels),
        cmocka_unit_test(rules_cover_rules),
        cmocka_unit_test(wildcards_over_everybody_are_told),
        cmocka_unit_test(a_word_for_a_long_rule_keeps_its_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
