/* net/dns: a question as hostile programs send it, and the reply. */

#include "net/dns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void questions_are_read(void **state) {
    (void)state;
#define HEAD "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
#define Q(text, name)                                                                              \
    { text, sizeof(text) - 1, name }
    static const struct {
        const char *packet;
        size_t len;
        const char *name; /* NULL: to be dropped */
    } cases[] = {
        Q(HEAD "\4pypi\3org\0\0\1\0\1", "pypi.org"),
        Q(HEAD "\4PyPI\3ORG\0\0\x1c\0\1", "pypi.org"),
        Q(HEAD "\0\0\2\0\1", ""),
        /* With EDNS behind it. */
        Q("\x12\x34\x01\x20\x00\x01\x00\x00\x00\x00\x00\x01\1x\0\0\1\0\1\0\0\x29\x10\0\0\0\0\0\0\0",
          "x"),
        Q(HEAD "\4pypi\3org\0\0\1\0\3", NULL),                                    /* class CH */
        Q(HEAD "\4pypi\3org\0\0\1\0\xff", NULL),                                  /* class ANY */
        Q("\x12\x34\x81\x00\x00\x01\x00\x00\x00\x00\x00\x00\1x\0\0\1\0\1", NULL), /* an answer */
        Q("\x12\x34\x29\x00\x00\x01\x00\x00\x00\x00\x00\x00\1x\0\0\1\0\1", NULL), /* an update */
        Q("\x12\x34\x03\x00\x00\x01\x00\x00\x00\x00\x00\x00\1x\0\0\1\0\1", NULL), /* cut */
        Q("\x12\x34\x01\x00\x00\x02\x00\x00\x00\x00\x00\x00\1x\0\0\1\0\1\1y\0\0\1\0\1", NULL),
        Q("\x12\x34\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\1x\0\0\1\0\1", NULL),
        Q("\x12\x34\x01\x00\x00\x01\x00\x01\x00\x00\x00\x00\1x\0\0\1\0\1", NULL),
        Q(HEAD "\xc0\x0c\0\1\0\1", NULL),    /* a pointer to itself */
        Q(HEAD "\1x\xc0\x0c\0\1\0\1", NULL), /* a loop */
        Q(HEAD "\x41x\0\0\1\0\1", NULL),     /* a label of another kind */
        Q(HEAD "\3a.b\0\0\1\0\1", NULL),     /* a dot inside of a label */
        Q(HEAD "\3a\0b\0\0\1\0\1", NULL),    /* a NUL */
        Q(HEAD "\3a b\0\0\1\0\1", NULL),
        Q(HEAD "\3a\xff"
               "b\0\0\1\0\1",
          NULL),
        Q(HEAD "\4pypi\3org", NULL),
        Q(HEAD "\4pypi\3org\0\0\1\0", NULL),
        Q(HEAD "\x3fpypi\0\0\1\0\1", NULL),
        Q("\x12\x34", NULL),
        Q("", NULL),
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_question q;
        uint8_t *exact = malloc(cases[i].len + 1);
        memcpy(exact, cases[i].packet, cases[i].len);
        bool good = net_dns_read(exact, cases[i].len, &q);
        if (good != (cases[i].name != NULL))
            fail_msg("case %zu", i);
        if (good) {
            assert_string_equal(q.name, cases[i].name);
            assert_int_equal(q.id, 0x1234);
            assert_true(q.recursion);
        }
        free(exact);
    }
}

static void names_have_253_characters_at_most(void **state) {
    (void)state;
    for (size_t last = 61; last <= 63; last++) {
        uint8_t p[400] = HEAD;
        static const uint8_t behind[] = {0, 0, 1, 0, 1};
        struct net_question q;
        size_t at = 12;
        for (int i = 0; i < 4; i++) {
            size_t label = i < 3 ? 63 : last;
            p[at++] = (uint8_t)label;
            memset(p + at, 'a', label);
            at += label;
        }
        memcpy(p + at, behind, sizeof behind);
        bool good = net_dns_read(p, at + sizeof behind, &q);
        assert_int_equal(good, last == 61);
        if (good)
            assert_int_equal(strlen(q.name), 253);
    }
}

static struct net_question ask(const char *packet, size_t len) {
    struct net_question q;
    assert_true(net_dns_read((const uint8_t *)packet, len, &q));
    return q;
}

static void a_reply_echoes_the_question_and_adds_addresses(void **state) {
    (void)state;
    static const char packet[] = HEAD "\4PyPI\3org\0\0\1\0\1";
    struct net_question q = ask(packet, sizeof packet - 1);
    struct net_addr a[3];
    uint8_t to[512];
    assert_true(net_addr_parse("198.51.100.7", 12, &a[0]));
    assert_true(net_addr_parse("2001:db8::1", 11, &a[1]));
    assert_true(net_addr_parse("203.0.113.9", 11, &a[2]));
    size_t n = net_dns_reply(&q, NET_RCODE_OK, 300, a, 3, to, sizeof to);
    static const char wanted[] = "\x12\x34\x81\x80\0\1\0\2\0\0\0\0\4PyPI\3org\0\0\1\0\1"
                                 "\xc0\x0c\0\1\0\1\0\0\1\x2c\0\4\xc6\x33\x64\x07"
                                 "\xc0\x0c\0\1\0\1\0\0\1\x2c\0\4\xcb\x00\x71\x09";
    assert_int_equal(n, sizeof wanted - 1);
    assert_memory_equal(to, wanted, n);
    q.type = NET_DNS_AAAA;
    n = net_dns_reply(&q, NET_RCODE_OK, 1, a, 3, to, sizeof to);
    assert_int_equal(n, 12 + 14 + 28);
    assert_memory_equal(to + n - 16, a[1].b, 16);
    /* Of a type that we have nothing of. */
    q.type = 65;
    assert_int_equal(net_dns_reply(&q, NET_RCODE_OK, 1, a, 3, to, sizeof to), 12 + 14);
    n = net_dns_reply(&q, NET_RCODE_NO_NAME, 0, NULL, 0, to, sizeof to);
    assert_int_equal(n, 12 + 14);
    assert_int_equal(to[3], 0x83);
}

static void what_does_not_fit_is_left_out(void **state) {
    (void)state;
    static const char packet[] = HEAD "\4pypi\3org\0\0\x1c\0\1";
    struct net_question q = ask(packet, sizeof packet - 1);
    struct net_addr a[NET_ADDRESSES];
    uint8_t to[NET_PACKET_BYTES];
    for (size_t i = 0; i < NET_ADDRESSES; i++)
        assert_true(net_addr_parse("2001:db8::1", 11, &a[i]));
    size_t n = net_dns_reply(&q, NET_RCODE_OK, 300, a, NET_ADDRESSES, to, sizeof to);
    assert_true(n <= sizeof to);
    assert_int_equal(n, 26 + 28 * ((sizeof to - 26) / 28));
    assert_int_equal(to[7], (sizeof to - 26) / 28);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_are_read),
        cmocka_unit_test(names_have_253_characters_at_most),
        cmocka_unit_test(a_reply_echoes_the_question_and_adds_addresses),
        cmocka_unit_test(what_does_not_fit_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
