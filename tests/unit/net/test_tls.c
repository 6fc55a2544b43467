/* net/tls: every hello of a connection is asked for, and nothing else is held up. */

#include "net/tls.h"

#include "hello_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const size_t steps[] = {1u << 20, 1000, 7, 1};
#define STEPS (sizeof steps / sizeof *steps)

static void add_record(struct buf *b, char type, size_t size, const char *begins, size_t len) {
    const char head[] = {type, 3, 3};
    buf_add(b, head, sizeof head);
    add_number(b, 2, size);
    buf_add(b, begins, len);
    for (; len < size; len++)
        buf_addc(b, (char)0xaa);
}

/* Sends all of it in pieces of `step` bytes, allowing each name; the names go to `names`, each with
 * the number of bytes that went out before. False: it was bad. */
static bool run(const struct buf *b, size_t step, struct buf *names) {
    struct net_tls t = {0};
    size_t there = 0, at = 0;
    for (;;) {
        struct net_looked l;
        uint8_t *exact = malloc(there - at + 1);
        memcpy(exact + 1, b->data + at, there - at);
        net_tls_look(&t, exact + 1, there - at, &l);
        free(exact);
        if (l.pass > 0) {
            size_t n = l.pass < step ? l.pass : step;
            net_tls_passed(&t, n);
            at += n;
        } else if (l.heard == NET_HEARD_NAME) {
            buf_addf(names, "%zu:%s ", at, l.name);
            net_tls_allow(&t);
        } else if (l.heard == NET_HEARD_BAD) {
            return false;
        } else if (there == b->len) {
            return true;
        } else {
            assert_true(l.need > there - at);
            there = b->len - there < step ? b->len : there + step;
        }
    }
}

static void assert_names(const struct buf *b, const char *wanted, bool good) {
    for (size_t i = 0; i < STEPS; i++) {
        AUTO_BUF names = BUF_INIT;
        assert_int_equal(run(b, steps[i], &names), good);
        assert_string_equal(names.data, wanted);
    }
}

static void after_one_hello_everything_passes(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    add_good_hello(&b, "pypi.org", 100, 50);
    add_record(&b, 20, 1, "\1", 1);
    add_record(&b, 23, 16384 + 256, "", 0);
    add_record(&b, 21, 26, "", 0);
    for (int i = 0; i < 5; i++)
        add_record(&b, 23, 16384, "", 0);
    buf_adds(&b, "whatever it is, the handshake is over");
    assert_names(&b, "0:pypi.org ", true);
}

static void a_second_hello_is_asked_for(void **state) {
    (void)state;
    static const size_t records[] = {16384, 50, 3, 1};
    for (size_t i = 0; i < 4; i++) {
        AUTO_BUF b = BUF_INIT;
        add_good_hello(&b, "a.org", 0, 16384); /* 76 bytes with what follows */
        add_record(&b, 20, 1, "\1", 1);
        add_good_hello(&b, "evil.org", 0, records[i]);
        add_record(&b, 23, 100, "", 0);
        assert_names(&b, "0:a.org 76:evil.org ", true);
    }
}

static void whatever_version_it_says(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    add_good_hello(&b, "a.org", 0, 16384);
    size_t at = b.len + 9;
    add_good_hello(&b, "evil.org", 0, 16384);
    b.data[at] = 2;
    assert_names(&b, "0:a.org 70:evil.org ", true);
}

static void so_is_one_behind_early_data(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    add_good_hello(&b, "a.org", 0, 16384);
    for (int i = 0; i < 3; i++)
        add_record(&b, 23, 16384 + 16, "\1", 1);
    add_good_hello(&b, "evil.org", 0, 16384);
    assert_names(&b, "0:a.org 49285:evil.org ", true);
}

static void a_handshake_of_tls_1_2_passes(void **state) {
    (void)state;
    AUTO_BUF full = BUF_INIT;
    AUTO_BUF resumed = BUF_INIT;
    add_good_hello(&full, "a.org", 0, 16384);
    add_record(&full, 22, 70, "\x10\0\0\x42", 4);
    add_record(&full, 20, 1, "\1", 1);
    add_record(&full, 22, 40, "\1\0\0\x24\3", 5); /* encrypted, by chance */
    add_record(&full, 23, 100, "", 0);
    assert_names(&full, "0:a.org ", true);
    add_good_hello(&resumed, "a.org", 0, 16384);
    add_record(&resumed, 20, 1, "\1", 1);
    add_record(&resumed, 22, 40, "\1\x77\0\0\3", 5);
    add_record(&resumed, 23, 100, "", 0);
    assert_names(&resumed, "0:a.org ", true);
}

static void what_is_no_record_is_bad(void **state) {
    (void)state;
    static const struct {
        const char *data;
        size_t len;
    } cases[] = {
        {"GET / HTTP/1.1\r\n", 16},
        {"\x18\3\3\0\1\1", 6},
        {"\x16\3\3\0\0", 5},
        {"\x17\2\3\0\1\1", 6},
        {"\x17\3\3\x48\1", 5},
        {"\x16\3\1\0\4\1\0\0\0", 9},
        {"\x16\3\3\0\x14\1\0\0\x10\3zzzzzzzzzzzzzzz", 25},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF b = BUF_INIT;
        add_good_hello(&b, "a.org", 0, 16384);
        buf_add(&b, cases[i].data, cases[i].len);
        assert_names(&b, "0:a.org ", false);
    }
    AUTO_BUF none = BUF_INIT;
    add_record(&none, 23, 100, "", 0);
    assert_names(&none, "", false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_one_hello_everything_passes),
        cmocka_unit_test(a_second_hello_is_asked_for),
        cmocka_unit_test(whatever_version_it_says),
        cmocka_unit_test(so_is_one_behind_early_data),
        cmocka_unit_test(a_handshake_of_tls_1_2_passes),
        cmocka_unit_test(what_is_no_record_is_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
