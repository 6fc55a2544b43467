/* net/policy_json, sets, policy and within: policies as users write them, as bytes, and against
 * what an operator grants. */

#include "net/policy_json.h"
#include "net/within.h"

#include "base/json.h"

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

static void assert_json(const struct net_policy *p, const char *wanted) {
    AUTO_BUF b = BUF_INIT;
    struct jw j = JW_INIT(&b);
    net_policy_to_json(p, &j);
    assert_string_equal(b.data, wanted);
}

static const struct {
    const char *text, *json;
} good[] = {
    {"", "\"none\""},
    {"none", "\"none\""},
    {" open\n", "\"open\""},
    {"pypi.org", "{\"allow\":[\"pypi.org\"]}"},
    {"db.", "{\"allow\":[\"db\"]}"},
    {"db:5432", "{\"allow\":[\"db:5432\"]}"},
    {"[\"db\"]", "{\"allow\":[\"db\"]}"},
    {"pypi.org:80,443 *.npm.example,10.1.0.0/16:22",
     "{\"allow\":[\"pypi.org:80,443\",\"*.npm.example\",\"10.1.0.0/16:22\"]}"},
    {"[2001:db8::1]:443", "{\"allow\":[\"[2001:db8::1]:443\"]}"},
    {"[\"*.com\", \"x.org\", \"*.co.uk:443\"]",
     "{\"allow\":[\"*.com\",\"x.org\",\"*.co.uk:443\"],\"broad\":[\"*.com\",\"*.co.uk:443\"]}"},
    {"{\"allow\": [\"x.org\"], \"broad\": [\"*.com\"]}", "{\"allow\":[\"x.org\"]}"},
    {"[]", "{\"allow\":[]}"},
    {"[\"@pypi\", \"x.org\"]",
     "{\"allow\":[\"pypi.org:443\",\"files.pythonhosted.org:443\",\"x.org\"]}"},
    {"{}", "{\"allow\":[]}"},
    {"{\"allow\": null}", "{\"allow\":[]}"},
    {"{\"open\": true}", "\"open\""},
    {"{\"open\": true, \"deny\": [\"203.0.113.0/24\"]}",
     "{\"open\":true,\"allow\":[],\"deny\":[\"203.0.113.0/24\"]}"},
    {"{\"allow\": [{\"domain\": \"*.X.org\", \"ports\": [443, \"8000-8010\"]}, {\"address\": "
     "\"2001:db8::1\", \"ports\": [22]}, {\"cidr\": \"10.0.0.0/8\"}], \"strict_tls\": false, "
     "\"refuse\": \"unreachable\", \"connections\": 8, \"bytes\": 9007199254740992}",
     "{\"allow\":[\"*.x.org:443,8000-8010\",\"[2001:db8::1]:22\",\"10.0.0.0/8\"],"
     "\"strict_tls\":false,\"refuse\":\"unreachable\",\"connections\":8,"
     "\"bytes\":9007199254740992}"},
};

static void policies_are_read_in_every_form(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        AUTO_NET_POLICY p = NET_POLICY_INIT;
        policy(good[i].text, &p);
        assert_json(&p, good[i].json);
    }
}

static void the_gate_decodes_what_the_server_encodes(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        AUTO_NET_POLICY p = NET_POLICY_INIT;
        AUTO_NET_POLICY out = NET_POLICY_INIT;
        AUTO_BUF b = BUF_INIT;
        struct err e;
        policy(good[i].text, &p);
        assert_int_equal(net_policy_deny_from_text("198.51.100.0/24", 15, "x", &p, &e), 0);
        net_policy_encode(&p, &b);
        assert_int_equal(net_policy_decode(b.data, b.len, &out, &e), 0);
        assert_json(&out, good[i].json);
        assert_int_equal(out.noperator, 1);
        for (size_t len = 0; len < b.len; len++) {
            AUTO_NET_POLICY cut = NET_POLICY_INIT;
            assert_int_equal(net_policy_decode(b.data, len, &cut, &e), -1);
            assert_true(cut.mode == NET_NONE && cut.allow == NULL);
        }
        buf_addc(&b, '\0');
        net_policy_done(&out);
        assert_int_equal(net_policy_decode(b.data, b.len, &out, &e), -1);
    }
}

static void bad_policies_name_the_entry_and_the_reason(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"{\"allow\": [\"a.org\", \"b.org\", \"c.org\", \"a..b\"]}", "network.allow[3]: two dots"},
        {"[\"a.org\", \"x:99999\"]", "network[1]: a port is"},
        {"a.org x:99999", "network[1]: a port is"},
        {"opne", "network: \"opne\": did you mean open? A host of that name is \"opne.\""},
        {"nonee", "did you mean none?"},
        {"all",
         "network: \"all\": did you mean \"open\" or \"none\"? A host of that name is \"all.\""},
        {"localhost", "did you mean \"open\" or \"none\"?"},
        {"[\"@nope\"]", "network[0]: there is no set @nope, but @pypi, @npm, @debian"},
        {"[\"open\"]", "network[0]: \"open\" stands alone"},
        {"[\"*\"]", "network[0]: for every public address say \"open\""},
        {"[7]", "network[0]: a rule is a string or an object"},
        {"{\"allow\": \"pypi.org\"}", "network.allow: it is a list"},
        {"{\"alow\": []}", "network: there is no field \"alow\""},
        {"{\"allow\": [{\"ports\": [80]}]}", "network.allow[0]: a rule has one of"},
        {"{\"allow\": [{\"domain\": \"a.b\", \"cidr\": \"10.0.0.0/8\"}]}", "a rule has one of"},
        {"{\"allow\": [{\"domain\": \"a.b\", \"port\": 80}]}", "there is no field \"port\""},
        {"{\"allow\": [{\"domain\": 7}]}", "domain is a string"},
        {"{\"allow\": [{\"domain\": \"a.b:80\"}]}", "network.allow[0]: a name has letters"},
        {"{\"allow\": [{\"address\": \"10.0.0.0/8\"}]}", "a range is a \"cidr\""},
        {"{\"allow\": [{\"domain\": \"a.b\", \"ports\": 80}]}", "ports is a list"},
        {"{\"allow\": [{\"domain\": \"a.b\", \"ports\": []}]}", "ports is a list"},
        {"{\"allow\": [{\"domain\": \"a.b\", \"ports\": [80, 0]}]}",
         "network.allow[0]: ports[1]: a port is"},
        {"{\"allow\": [{\"domain\": \"a.b\", \"ports\": [-1]}]}", "a port is"},
        {"{\"allow\": [{\"domain\": \"a.b\", \"ports\": [1.5]}]}", "neither a number nor"},
        {"{\"deny\": [\"pypi.org\"]}", "network.deny[0]: it is no address"},
        {"{\"deny\": \"10.0.0.0/8\"}", "network.deny: it is a list"},
        {"{\"strict_tls\": 1}", "network.strict_tls: it is true or false"},
        {"{\"open\": true, \"strict_tls\": true}", "network.strict_tls: it is for rules"},
        {"{\"refuse\": \"no\"}", "network.refuse: it is"},
        {"{\"connections\": 0}", "network.connections: it is a number from 1 to 256"},
        {"{\"connections\": 257}", "network.connections: it is a number from 1 to 256"},
        {"{\"bytes\": -1}", "network.bytes: it is a number from 1"},
        {"{\"open\": 1}", "network.open: it is true or false"},
        {"{\"allow\": [}", "network: "},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_policy p;
        struct err e = {0};
        assert_int_equal(
            net_policy_from_text(cases[i].text, strlen(cases[i].text), NULL, "network", &p, &e),
            -1);
        if (strstr(e.text, cases[i].why) == NULL)
            fail_msg("%s: %s", cases[i].text, e.text);
        assert_true(p.mode == NET_NONE && p.allow == NULL);
    }
}

static void too_many_rules_are_refused(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    struct net_policy p;
    struct err e;
    for (int i = 0; i <= NET_ALLOW_MAX; i++)
        buf_addf(&b, "h%d.org ", i);
    assert_int_equal(net_policy_from_text(b.data, b.len, NULL, "network", &p, &e), -1);
    assert_non_null(strstr(e.text, "network[256]: there are more than 256 rules"));
    buf_clear(&b);
    for (int i = 0; i <= NET_DENY_MAX; i++)
        buf_addf(&b, "%s\"10.0.0.%d\"", i > 0 ? "," : "{\"deny\": [", i);
    buf_adds(&b, "]}");
    assert_int_equal(net_policy_from_text(b.data, b.len, NULL, "network", &p, &e), -1);
    assert_non_null(strstr(e.text, "network.deny[64]: there are more than 64"));
}

static void an_operator_can_add_sets_and_replace_ours(void **state) {
    (void)state;
    static const char text[] =
        "{\"corp\": [\"git.corp.example:443\", \"10.1.0.0/16\"], \"pypi\": [\"mirror.example\"]}";
    AUTO_NET_SETS sets = {0};
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    AUTO_BUF names = BUF_INIT;
    struct err e;
    assert_int_equal(net_sets_from_text(text, strlen(text), &sets, &e), 0);
    assert_int_equal(net_policy_from_text("@corp,@pypi,@npm", 16, &sets, "network", &p, &e), 0);
    assert_json(&p, "{\"allow\":[\"git.corp.example:443\",\"10.1.0.0/16\",\"mirror.example\","
                    "\"registry.npmjs.org:443\"]}");
    net_sets_names(&sets, &names);
    assert_string_equal(names.data, "@pypi, @npm, @debian, @corp");
    static const char *const bad[] = {
        "[]",         "{\"UP\": []}", "{\"a\": [7]}", "{\"a\": [\"@pypi\"]}", "{\"a\": \"b\"}",
        "{\"\": []}", "nonsense"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct net_sets s;
        assert_int_equal(net_sets_from_text(bad[i], strlen(bad[i]), &s, &e), -1);
        assert_true(s.n == 0 && s.sets == NULL);
    }
}

static void what_an_operator_denies_is_read(void **state) {
    (void)state;
    static const char *const texts[] = {"203.0.113.0/24, 2001:db8::/32",
                                        " [\"203.0.113.0/24\", \"2001:db8::/32\"]",
                                        "203.0.113.0/24 203.0.113.9 2001:db8::/32"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        AUTO_NET_POLICY p = NET_POLICY_INIT;
        struct err e;
        assert_int_equal(net_policy_deny_from_text(texts[i], strlen(texts[i]), "x", &p, &e), 0);
        assert_int_equal(p.noperator, 2);
    }
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    struct err e;
    assert_int_equal(net_policy_deny_from_text("pypi.org", 8, "network_deny", &p, &e), -1);
    assert_string_equal(e.text, "network_deny[0]: it is no address");
}

static void a_request_is_held_against_the_maximum(void **state) {
    (void)state;
    static const struct {
        const char *most, *asked, *why; /* NULL: granted */
    } cases[] = {
        {"none", "none", NULL},
        {"none", "pypi.org", "no network is granted"},
        {"none", "[]", NULL},
        {"none", "open", "no network is granted"},
        {"open", "open", NULL},
        {"open", "pypi.org 203.0.113.9:22 0.0.0.0/0", NULL},
        {"open", "10.1.0.0/16", "10.1.0.0/16 is not granted"},
        {"open", "169.254.169.254:80", "169.254.169.254:80 is not granted"},
        {"{\"open\": true, \"allow\": [\"10.0.0.0/8\"]}", "10.1.0.0/16:22", NULL},
        {"pypi.org", "open", "\"open\" is not granted"},
        {"pypi.org:443", "pypi.org:443", NULL},
        {"pypi.org:443", "PYPI.org.:443", NULL},
        {"pypi.org:443", "pypi.org", "pypi.org is not granted"},
        {"pypi.org:443", "pypi.org:80,443", "pypi.org:80,443 is not granted"},
        {"pypi.org:443 pypi.org:80", "pypi.org:80,443", NULL},
        {"*.org:1-100 pypi.org:101-200", "pypi.org:50-150", NULL},
        {"*.org:1-100 pypi.org:102-200", "pypi.org:50-150", "pypi.org:50-150 is not granted"},
        {"pypi.org:1-32767 *.org:32768-65535", "pypi.org", NULL},
        {"pypi.org:2-65535", "pypi.org", "pypi.org is not granted"},
        {"*.org", "pypi.org *.pypi.org", NULL},
        {"*.pypi.org", "pypi.org", "pypi.org is not granted"},
        {"a.org b.org", "a.org c.org:1 d.org", "network: c.org:1 is not granted"},
        {"10.0.0.0/8:443", "10.1.2.3:443", NULL},
        {"10.1.2.3", "10.0.0.0/8", "10.0.0.0/8 is not granted"},
        {"0.0.0.0/0", "pypi.org", "pypi.org is not granted"},
        {"0.0.0.0/0 ::/0", "203.0.113.0/24 8.0.0.0/5 [2001:db8::1]:80", NULL},
        {"0.0.0.0/0", "10.1.0.0/16", "10.1.0.0/16 is not granted"},
        {"168.0.0.0/5", "169.254.169.254:80", "169.254.169.254:80 is not granted"},
        {"::/0", "fd00::/8", "fd00::/8 is not granted"},
        {"0.0.0.0/0 10.0.0.0/8", "10.1.0.0/16", NULL},
        {"pypi.org", "{\"allow\": [\"pypi.org\"], \"strict_tls\": false}", "network.strict_tls"},
        {"{\"allow\": [\"pypi.org\"], \"strict_tls\": false}",
         "{\"allow\": [\"pypi.org\"], \"strict_tls\": false}", NULL},
        {"open", "{\"allow\": [\"pypi.org\"], \"strict_tls\": false}", NULL},
        {"{\"open\": true, \"connections\": 4}", "{\"open\": true, \"connections\": 5}",
         "network.connections: at most 4"},
        {"{\"open\": true, \"bytes\": 10}", "{\"open\": true, \"bytes\": 11}",
         "network.bytes: at most 10"},
        {"{\"open\": true, \"bytes\": 10}", "{\"open\": true, \"bytes\": 10}", NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_NET_POLICY most = NET_POLICY_INIT;
        AUTO_NET_POLICY asked = NET_POLICY_INIT;
        struct err e = {0};
        policy(cases[i].most, &most);
        policy(cases[i].asked, &asked);
        int r = net_policy_within(&asked, &most, "network", &e);
        if (r != (cases[i].why == NULL ? 0 : -1) || (r < 0 && strstr(e.text, cases[i].why) == NULL))
            fail_msg("%s within %s: %s", cases[i].asked, cases[i].most, e.text);
        if (r < 0)
            assert_string_equal(e.kind, "network_not_allowed");
    }
}

static void the_maximum_bounds_what_it_grants(void **state) {
    (void)state;
    AUTO_NET_POLICY most = NET_POLICY_INIT;
    AUTO_NET_POLICY asked = NET_POLICY_INIT;
    struct err e;
    policy("{\"open\": true, \"deny\": [\"203.0.113.0/24\"], \"connections\": 4, \"bytes\": 10}",
           &most);
    assert_int_equal(net_policy_deny_from_text("198.51.100.9", 12, "x", &most, &e), 0);
    policy("pypi.org", &asked);
    assert_int_equal(net_policy_within(&asked, &most, "network", &e), 0);
    assert_int_equal(asked.connections, 4);
    assert_int_equal(asked.bytes, 10);
    assert_int_equal(asked.noperator, 2);
    assert_int_equal(asked.ndeny, 0);
}

/* SECURITY: see struct net_rule. */
static void only_the_operator_opens_the_hosts_own_addresses(void **state) {
    (void)state;
    static const struct {
        const char *most, *asked;
        bool own;
    } cases[] = {
        {"192.168.1.5", "192.168.1.5", true},
        {"192.168.1.5", "192.168.1.5:80", true},
        {"192.168.0.0/16", "192.168.1.5", false},
        {"192.168.0.0/16 192.168.1.5", "192.168.1.5", true},
        {"192.168.0.0/16 192.168.1.5:80", "192.168.1.5", false},
        {"192.168.0.0/16 192.168.1.5:80", "192.168.1.5:80", true},
        {"open", "203.0.113.9", false},
        {"{\"open\": true, \"allow\": [\"203.0.113.9\"]}", "203.0.113.9", true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_NET_POLICY most = NET_POLICY_INIT;
        AUTO_NET_POLICY asked = NET_POLICY_INIT;
        struct err e;
        policy(cases[i].most, &most);
        policy(cases[i].asked, &asked);
        assert_int_equal(net_policy_within(&asked, &most, "network", &e), 0);
        if (asked.allow[0].own != cases[i].own)
            fail_msg("%s within %s", cases[i].asked, cases[i].most);
    }
}

static void wide_wildcards_are_found(void **state) {
    (void)state;
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    policy("a.org *.com b.org *.co.uk *.a.org", &p);
    assert_int_equal(net_policy_broad(&p, 0), 1);
    assert_int_equal(net_policy_broad(&p, 2), 3);
    assert_int_equal(net_policy_broad(&p, 4), 5);
}

static void a_copy_is_a_policy_of_its_own(void **state) {
    (void)state;
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    AUTO_NET_POLICY copy = NET_POLICY_INIT;
    policy("{\"allow\": [\"a.org\"], \"deny\": [\"203.0.113.0/24\"]}", &p);
    net_policy_copy(&p, &copy);
    net_policy_done(&p);
    assert_json(&copy, "{\"allow\":[\"a.org\"],\"deny\":[\"203.0.113.0/24\"]}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_are_read_in_every_form),
        cmocka_unit_test(the_gate_decodes_what_the_server_encodes),
        cmocka_unit_test(bad_policies_name_the_entry_and_the_reason),
        cmocka_unit_test(too_many_rules_are_refused),
        cmocka_unit_test(an_operator_can_add_sets_and_replace_ours),
        cmocka_unit_test(what_an_operator_denies_is_read),
        cmocka_unit_test(a_request_is_held_against_the_maximum),
        cmocka_unit_test(the_maximum_bounds_what_it_grants),
        cmocka_unit_test(only_the_operator_opens_the_hosts_own_addresses),
        cmocka_unit_test(wide_wildcards_are_found),
        cmocka_unit_test(a_copy_is_a_policy_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
