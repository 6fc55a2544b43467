/* net/hello: the name in a ClientHello, whole, in pieces and wrong. */

#include "net/hello.h"

#include "hello_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* In memory of just its size, so that a sanitizer sees a byte too many read. */
static enum net_heard read_exact(const struct buf *b, size_t len, char *name, size_t *need) {
    uint8_t *exact = malloc(len + 1);
    memcpy(exact + 1, b->data, len);
    enum net_heard heard = net_hello_read(exact + 1, len, name, need);
    free(exact);
    return heard;
}

static void the_name_is_found(void **state) {
    (void)state;
    static const size_t records[] = {16384, 1000, 50, 5, 4, 1};
    for (size_t i = 0; i < COUNT(records); i++) {
        AUTO_BUF b = BUF_INIT;
        char name[NET_NAME_SIZE];
        size_t need = 0;
        add_good_hello(&b, "Files.PyPI.org", 200, records[i]);
        assert_int_equal(read_exact(&b, b.len, name, &need), NET_HEARD_NAME);
        assert_string_equal(name, "files.pypi.org");
        /* Each look says how much the next one needs: never too much, always more than there is. */
        for (size_t len = 0; len < b.len; len++) {
            assert_int_equal(read_exact(&b, len, name, &need), NET_HEARD_MORE);
            assert_true(need > len && need <= b.len);
            assert_string_equal(name, "");
        }
        /* What comes behind it does not matter. */
        buf_adds(&b, "early data");
        assert_int_equal(read_exact(&b, b.len, name, &need), NET_HEARD_NAME);
    }
}

static void large_hellos_are_taken_up_to_a_bound(void **state) {
    (void)state;
    char name[NET_NAME_SIZE];
    size_t need;
    AUTO_BUF large = BUF_INIT;
    AUTO_BUF larger = BUF_INIT;
    AUTO_BUF pieces = BUF_INIT;
    add_good_hello(&large, "pypi.org", 16000, 16384);
    assert_int_equal(read_exact(&large, large.len, name, &need), NET_HEARD_NAME);
    add_good_hello(&larger, "pypi.org", 16384, 16384);
    assert_int_equal(read_exact(&larger, 100, name, &need), NET_HEARD_BAD);
    /* Not so large by itself, but with the heads of its records. */
    add_good_hello(&pieces, "pypi.org", 12000, 1);
    assert_int_equal(read_exact(&pieces, NET_HEAD_BYTES, name, &need), NET_HEARD_BAD);
}

static void without_one_good_name_it_is_bad(void **state) {
    (void)state;
    static const struct {
        const char *name;
        size_t len;
    } names[] = {{"", 0},     {"a\0b", 3},          {"a b", 3},
                 {".", 1},    {"198.51.100.7", 12}, {"2001:db8::1", 11},
                 {"a..b", 4}, {"\xff", 1},          {"*.pypi.org", 10}};
    char name[NET_NAME_SIZE], longest[300];
    size_t need;
    for (size_t i = 0; i < COUNT(names); i++) {
        AUTO_BUF extensions = BUF_INIT;
        AUTO_BUF message = BUF_INIT;
        AUTO_BUF b = BUF_INIT;
        add_name(&extensions, names[i].name, names[i].len);
        add_hello(&message, &extensions, 0);
        add_records(&b, &message, 16384);
        assert_int_equal(read_exact(&b, b.len, name, &need), NET_HEARD_BAD);
        assert_string_equal(name, "");
    }
    for (int twice = 0; twice < 3; twice++) {
        AUTO_BUF extensions = BUF_INIT;
        AUTO_BUF message = BUF_INIT;
        AUTO_BUF b = BUF_INIT;
        memset(longest, 'a', sizeof longest);
        for (int i = 0; i < twice; i++) /* none, one that is too long, or two */
            add_name(&extensions, twice == 1 ? longest : "pypi.org",
                     twice == 1 ? sizeof longest : 8);
        add_hello(&message, &extensions, 0);
        add_records(&b, &message, 16384);
        assert_int_equal(read_exact(&b, b.len, name, &need), NET_HEARD_BAD);
    }
}

static void two_names_in_one_extension_are_bad(void **state) {
    (void)state;
    AUTO_BUF extensions = BUF_INIT;
    AUTO_BUF message = BUF_INIT;
    AUTO_BUF b = BUF_INIT;
    char name[NET_NAME_SIZE];
    size_t need;
    buf_add(&extensions, "\0\0\0\x0a\0\x08\0\0\1a\0\0\1b", 14);
    add_hello(&message, &extensions, 0);
    add_records(&b, &message, 16384);
    assert_int_equal(read_exact(&b, b.len, name, &need), NET_HEARD_BAD);
}

/* A second hello in the record of the first could name another host. */
static void nothing_else_may_be_in_its_record(void **state) {
    (void)state;
    AUTO_BUF extensions = BUF_INIT;
    AUTO_BUF message = BUF_INIT;
    AUTO_BUF b = BUF_INIT;
    char name[NET_NAME_SIZE];
    size_t need;
    add_name(&extensions, "pypi.org", 8);
    add_hello(&message, &extensions, 0);
    add_hello(&message, &extensions, 0);
    add_records(&b, &message, 16384);
    assert_int_equal(read_exact(&b, b.len, name, &need), NET_HEARD_BAD);
}

static void what_is_no_tls_is_bad_at_once(void **state) {
    (void)state;
    static const struct {
        const char *data;
        size_t len;
    } cases[] = {
        {"GET / HTTP/1.1\r\n", 16},    {"S", 1}, {"\x80\x2e\1\0\2", 5}, /* SSL 2 */
        {"\x16\2\0\0\5", 5},           /* a version that never was */
        {"\x16\3\1\0\0", 5},           /* an empty record */
        {"\x16\3\1\x40\1", 5},         /* one that is too long */
        {"\x17\3\3\0\5hello", 10},     /* data */
        {"\x16\3\1\0\4\2\0\0\0", 9},   /* a ServerHello */
        {"\x16\3\1\0\4\1\0\x40\0", 9}, /* longer than we take */
        {"\x16\3\1\0\4\1\0\0\0", 9},   /* empty */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_BUF b = BUF_INIT;
        char name[NET_NAME_SIZE];
        size_t need;
        buf_add(&b, cases[i].data, cases[i].len);
        if (read_exact(&b, b.len, name, &need) != NET_HEARD_BAD)
            fail_msg("case %zu", i);
    }
}

/* Any byte changed: never a crash, and never another name without another byte in the name. */
static void changed_hellos_do_no_harm(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    char name[NET_NAME_SIZE];
    size_t need;
    add_good_hello(&b, "pypi.org", 20, 60);
    for (size_t i = 0; i < b.len * 256; i++) {
        char was = b.data[i / 256];
        b.data[i / 256] = (char)i;
        enum net_heard heard = read_exact(&b, b.len, name, &need);
        assert_true((heard == NET_HEARD_NAME) == (name[0] != '\0'));
        b.data[i / 256] = was;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_is_found),
        cmocka_unit_test(large_hellos_are_taken_up_to_a_bound),
        cmocka_unit_test(without_one_good_name_it_is_bad),
        cmocka_unit_test(two_names_in_one_extension_are_bad),
        cmocka_unit_test(nothing_else_may_be_in_its_record),
        cmocka_unit_test(what_is_no_tls_is_bad_at_once),
        cmocka_unit_test(changed_hellos_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
