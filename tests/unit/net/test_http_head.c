/* net/http_head: the Host of every request on a connection. */

#include "net/http_head.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Sends all of it in pieces of `step` bytes, allowing each host; the hosts go to `hosts`, with a
 * ' ' behind each. `sent` gets what went out. False: it was bad. */
static bool run(const char *text, size_t len, size_t step, struct buf *hosts, struct buf *sent) {
    struct net_http h = {0};
    size_t there = 0, at = 0;
    for (;;) {
        struct net_looked l;
        uint8_t *exact = malloc(there - at + 1);
        memcpy(exact + 1, text + at, there - at);
        net_http_look(&h, exact + 1, there - at, &l);
        free(exact);
        if (l.pass > 0) {
            size_t n = l.pass < step ? l.pass : step;
            assert_true(n <= there - at);
            buf_add(sent, text + at, n);
            net_http_passed(&h, n);
            at += n;
        } else if (l.heard == NET_HEARD_NAME) {
            buf_addf(hosts, "%s ", l.name);
            net_http_allow(&h);
        } else if (l.heard == NET_HEARD_BAD) {
            return false;
        } else if (there == len) {
            return true;
        } else {
            assert_true(l.need > there - at);
            there = len - there < step ? len : there + step;
        }
    }
}

static void assert_hosts(const char *text, const char *hosts, bool good) {
    static const size_t steps[] = {100000, 7, 1};
    for (size_t i = 0; i < COUNT(steps); i++) {
        AUTO_BUF heard = BUF_INIT;
        AUTO_BUF sent = BUF_INIT;
        bool was_good = run(text, strlen(text), steps[i], &heard, &sent);
        if (was_good != good || strcmp(heard.data, hosts) != 0)
            fail_msg("%s: \"%s\", %s", text, heard.data, was_good ? "good" : "bad");
        if (good && (sent.len > strlen(text) || memcmp(sent.data, text, sent.len) != 0))
            fail_msg("%s: sent %s", text, sent.data);
    }
}

#define GET "GET / HTTP/1.1\r\n"

static void every_request_says_its_host(void **state) {
    (void)state;
    static const struct {
        const char *text, *hosts;
    } cases[] = {
        {GET "Host: a.org\r\n\r\n", "a.org "},
        {GET "host:A.org:8080 \r\nAccept: */*\r\n\r\n", "a.org "},
        {GET "Host: a.org\r\n\r\n" GET "Host: b.org\r\n\r\n", "a.org b.org "},
        /* The one that was allowed last is not asked for again. */
        {GET "Host: a.org\r\n\r\n" GET "Host: A.org:80\r\n\r\n" GET "Host: b.org\r\n\r\n" GET
             "Host: a.org\r\n\r\n",
         "a.org b.org a.org "},
        {"POST / HTTP/1.1\r\nHost: a.org\r\nContent-Length: 5\r\n\r\nhello" GET
         "Host: b.org\r\n\r\n",
         "a.org b.org "},
        {"POST / HTTP/1.1\r\nHost: a.org\r\nContent-Length: 0\r\n\r\n" GET "Host: b.org\r\n\r\n",
         "a.org b.org "},
        /* A body that looks like a request is none. */
        {"POST / HTTP/1.1\r\nHost: a.org\r\nContent-Length: 35\r\n\r\n" GET
         "Host: evil.org\r\n\r\n" GET "Host: b.org\r\n\r\n",
         "a.org b.org "},
        {"POST / HTTP/1.1\r\nHost: a.org\r\nTransfer-Encoding: Chunked\r\n\r\n"
         "5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n" GET "Host: b.org\r\n\r\n",
         "a.org b.org "},
        {"POST / HTTP/1.1\r\nHost: a.org\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" GET
         "Host: b.org\r\n\r\n",
         "a.org b.org "},
        {"GET http://a.org/x HTTP/1.1\r\nHost: a.org\r\n\r\n", "a.org "},
        {"GET http://a.org:80 HTTP/1.1\r\nHost: a.org\r\n\r\n", "a.org "},
        {"GET /x\xc3\xbc HTTP/1.0\r\nHost: 198.51.100.7:80\r\n\r\n", "198.51.100.7 "},
        {GET "Host: [2001:db8::1]:80\r\n\r\n", "[2001:db8::1] "},
        {"OPTIONS * HTTP/1.1\r\nHost: a.org\r\n\r\n", "a.org "},
        {GET "Host: a.org\r\nX-Note: \xff\tany\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
         "a.org "},
        /* Not complete. */
        {"", ""},
        {GET "Host: a.org\r\n", ""},
        {"POST / HTTP/1.1\r\nHost: a.org\r\nContent-Length: 5\r\n\r\nhel", "a.org "},
        {"POST / HTTP/1.1\r\nHost: a.org\r\nTransfer-Encoding: chunked\r\n\r\n5", "a.org "},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_hosts(cases[i].text, cases[i].hosts, true);
}

static void what_two_servers_could_read_in_two_ways_is_bad(void **state) {
    (void)state;
    static const struct {
        const char *text, *hosts;
    } cases[] = {
        {GET "\r\n", ""},
        {GET "Host:\r\n\r\n", ""},
        {GET "Host: a.org\r\nHost: b.org\r\n\r\n", ""},
        {GET "Host: a.org\r\nHost: a.org\r\n\r\n", ""},
        {GET "Host: a.org, b.org\r\n\r\n", ""},
        {GET "Host: user@a.org\r\n\r\n", ""},
        {GET "Host: a.org/x\r\n\r\n", ""},
        {GET "Host: a.org:http\r\n\r\n", ""},
        {GET "Host : a.org\r\n\r\n", ""},
        {GET " Host: a.org\r\n\r\n", ""},
        {GET "Host: a.org\r\n folded: b.org\r\n\r\n", ""},
        {GET "X: y\r\n\tHost: a.org\r\n\r\n", ""},
        {GET "Host: a.org\nX: y\r\n\r\n", ""},
        {GET "Host: a.org\rX: y\r\n\r\n", ""},
        {GET "Host: a.org\r\r\n\r\n", ""},
        {"GET / HTTP/1.1\nHost: a.org\n\n\r\n\r\n", ""},
        {GET "Host: a.org\r\nno colon\r\n\r\n", ""},
        {GET "Host: a.org\r\n: empty\r\n\r\n", ""},
        {"GET / HTTP/1.1 \r\nHost: a.org\r\n\r\n", ""},
        {"GET /\r\nHost: a.org\r\n\r\n", ""},
        {"GET  / HTTP/1.1\r\nHost: a.org\r\n\r\n", ""},
        {"GET / x HTTP/1.1\r\nHost: a.org\r\n\r\n", ""},
        {"GET /\t HTTP/1.1\r\nHost: a.org\r\n\r\n", ""},
        {"GET / HTTP/2.0\r\nHost: a.org\r\n\r\n", ""},
        {"GET / HTTP/1.2\r\nHost: a.org\r\n\r\n", ""},
        {"GET / http/1.1\r\nHost: a.org\r\n\r\n", ""},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""},
        {"CONNECT a.org:443 HTTP/1.1\r\nHost: a.org\r\n\r\n", ""},
        {"GET a.org HTTP/1.1\r\nHost: a.org\r\n\r\n", ""},
        {"GET http://b.org/ HTTP/1.1\r\nHost: a.org\r\n\r\n", ""},
        {"GET http://a.org@b.org/ HTTP/1.1\r\nHost: a.org\r\n\r\n", ""},
        {"GET http://a.org#@b.org/ HTTP/1.1\r\nHost: a.org\r\n\r\n", ""},
        {"GET /x#y HTTP/1.1\r\nHost: a.org\r\n\r\n", ""},
        {"GET https://a.org/ HTTP/1.1\r\nHost: a.org\r\n\r\n", ""},
        {"\r\n" GET "Host: a.org\r\n\r\n", ""},
        {"\x16\3\1\2\0\1", ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_hosts(cases[i].text, cases[i].hosts, false);
    AUTO_BUF heard = BUF_INIT;
    AUTO_BUF sent = BUF_INIT;
    static const char nul[] = GET "Host: a.org\r\nX: a\0b\r\n\r\n";
    assert_false(run(nul, sizeof nul - 1, 1000, &heard, &sent));
    assert_int_equal(sent.len, 0);
}

#define CHUNKED "POST / HTTP/1.1\r\nHost: a.org\r\nTransfer-Encoding: chunked\r\n\r\n"

static void so_is_a_body_that_could_end_in_two_places(void **state) {
    (void)state;
    static const struct {
        const char *text, *hosts;
    } cases[] = {
        {GET "Host: a.org\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", ""},
        {GET "Host: a.org\r\nContent-Length: +5\r\n\r\n", ""},
        {GET "Host: a.org\r\nContent-Length: 5, 5\r\n\r\n", ""},
        {GET "Host: a.org\r\nContent-Length: 0x5\r\n\r\n", ""},
        {GET "Host: a.org\r\nContent-Length:\r\n\r\n", ""},
        {GET "Host: a.org\r\nContent-Length: 1000000000000000000\r\n\r\n", ""},
        {GET "Host: a.org\r\nContent_Length: 5\r\n\r\n", ""},
        {GET "Host: a.org\r\nTransfer_Encoding: chunked\r\n\r\n", ""},
        {GET "Host: a.org\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", ""},
        {GET "Host: a.org\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", ""},
        {GET "Host: a.org\r\nTransfer-Encoding: xchunked\r\n\r\n", ""},
        {GET "Host: a.org\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", ""},
        {"GET / HTTP/1.0\r\nHost: a.org\r\nTransfer-Encoding: chunked\r\n\r\n", ""},
        {CHUNKED "x\r\n", "a.org "},
        {CHUNKED "\r\n", "a.org "},
        {CHUNKED "5;ext\r\nhello\r\n", "a.org "},
        {CHUNKED "5 \r\nhello\r\n", "a.org "},
        {CHUNKED "0x5\r\nhello\r\n", "a.org "},
        {CHUNKED "5\nhello\r\n", "a.org "},
        {CHUNKED "5\rxhello\r\n", "a.org "},
        {CHUNKED "5\r\nhelloworld\r\n", "a.org "},
        {CHUNKED "10000000000000000\r\n", "a.org "},
        {CHUNKED "0\r\nHost: b.org\r\n\r\n", "a.org "},
        /* What was asked to become something else does not. */
        {GET "Host: a.org\r\nUpgrade: websocket\r\n\r\n\x81\x05hello", "a.org "},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_hosts(cases[i].text, cases[i].hosts, false);
}

static void heads_are_bounded(void **state) {
    (void)state;
    for (size_t over = 0; over < 2; over++) {
        AUTO_BUF b = BUF_INIT;
        AUTO_BUF heard = BUF_INIT;
        AUTO_BUF sent = BUF_INIT;
        buf_adds(&b, GET "Host: a.org\r\nX: ");
        while (b.len < NET_HEAD_BYTES + over - 4)
            buf_addc(&b, 'x');
        buf_adds(&b, "\r\n\r\n");
        assert_int_equal(run(b.data, b.len, 1000, &heard, &sent), over == 0);
        buf_clear(&sent);
        assert_int_equal(run(b.data, b.len, 1u << 20, &heard, &sent), over == 0);
    }
}

/* A body whose length nobody can have counted to. */
static void a_huge_body_passes_and_goes_on(void **state) {
    (void)state;
    struct net_http h = {0};
    struct net_looked l;
    static const char head[] = GET "Host: a.org\r\nContent-Length: 999999999999999999\r\n\r\n";
    net_http_look(&h, (const uint8_t *)head, sizeof head - 1, &l);
    assert_int_equal(l.heard, NET_HEARD_NAME);
    net_http_allow(&h);
    net_http_look(&h, (const uint8_t *)head, sizeof head - 1, &l);
    assert_int_equal(l.pass, sizeof head - 1);
    net_http_passed(&h, l.pass);
    net_http_look(&h, (const uint8_t *)head, 10, &l);
    assert_int_equal(l.pass, 10);
}

/* The end of a head is looked for behind what was looked at, which is of this head only. */
static void a_head_behind_one_that_came_in_pieces_is_its_own(void **state) {
    (void)state;
    struct net_http h = {0};
    struct net_looked l;
    static const char all[] = GET "Host: a.org\r\nX: a long line\r\n\r\n" GET
                                  "Host: b.org\r\n\r\n" GET "Host: c.org\r\n\r\n";
    const uint8_t *data = (const uint8_t *)all;
    net_http_look(&h, data, 45, &l);
    assert_int_equal(l.heard, NET_HEARD_MORE);
    net_http_look(&h, data, sizeof all - 1, &l);
    assert_string_equal(l.name, "a.org");
    net_http_allow(&h);
    net_http_look(&h, data, sizeof all - 1, &l);
    net_http_passed(&h, l.pass);
    net_http_look(&h, data + l.pass, sizeof all - 1 - l.pass, &l);
    assert_int_equal(l.heard, NET_HEARD_NAME);
    assert_string_equal(l.name, "b.org");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_says_its_host),
        cmocka_unit_test(what_two_servers_could_read_in_two_ways_is_bad),
        cmocka_unit_test(so_is_a_body_that_could_end_in_two_places),
        cmocka_unit_test(heads_are_bounded),
        cmocka_unit_test(a_head_behind_one_that_came_in_pieces_is_its_own),
        cmocka_unit_test(a_huge_body_passes_and_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
