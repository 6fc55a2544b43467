/* wire/wire: what was put comes out, and nothing that a hostile peer sends is believed. */

#include "base/fd.h"
#include "wire/fields.h"
#include "wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* Too large for comfort on the stack. */
static struct wire_out out;
static struct wire_in in;

static int setup(void **state) {
    (void)state;
    memset(&out, 0, sizeof out);
    memset(&in, 0, sizeof in);
    return 0;
}

static int count_fds(void) {
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

struct pair {
    int a, b;
};

static void pair_done(struct pair *p) {
    fd_close(&p->a);
    fd_close(&p->b);
}
#define AUTO_PAIR __attribute__((cleanup(pair_done))) struct pair

static struct pair make_pair(void) {
    int ends[2];
    struct err e;
    assert_int_equal(wire_pair(ends, &e), 0);
    return (struct pair){ends[0], ends[1]};
}

/* One packet with any bytes and descriptors, as only a hostile peer would send it. */
static void send_raw(int sock, const void *data, size_t len, const int *fds, size_t nfds) {
    char space[CMSG_SPACE(64 * sizeof(int))] = {0};
    struct iovec iov = {.iov_base = (void *)data, .iov_len = len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (nfds) {
        msg.msg_control = space;
        msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
    }
    assert_int_equal(sendmsg(sock, &msg, 0), len);
}

static void every_kind_of_field_comes_out_as_it_went_in(void **state) {
    (void)state;
    AUTO_PAIR p = make_pair();
    struct err e;
    AUTO_FD file = memfd_create("t", MFD_CLOEXEC);
    wire_begin(&out, WIRE_W_MADE);
    wire_put_u32(&out, UINT32_MAX);
    wire_put_u64(&out, UINT64_MAX - 1);
    wire_put_str(&out, "");
    wire_put_str(&out, "grün");
    wire_put_bytes(&out, "a\0b", 3);
    wire_put_bytes(&out, NULL, 0);
    wire_put_fd(&out, file);
    assert_int_equal(wire_send(p.a, &out, &e), WIRE_SENT);
    assert_int_equal(wire_recv(p.b, &in, &e), WIRE_GOT);
    assert_int_equal(in.type, WIRE_W_MADE);
    assert_int_equal(wire_get_u32(&in), UINT32_MAX);
    assert_true(wire_get_u64(&in) == UINT64_MAX - 1);
    assert_string_equal(wire_get_str(&in, 10), "");
    assert_string_equal(wire_get_str(&in, 5), "grün");
    size_t len;
    assert_memory_equal(wire_get_bytes(&in, &len), "a\0b", 3);
    assert_int_equal(len, 3);
    wire_get_bytes(&in, &len);
    assert_int_equal(len, 0);
    AUTO_FD got = wire_take_fd(&in);
    assert_int_equal(fcntl(got, F_GETFD), FD_CLOEXEC);
    assert_int_equal(wire_end(&in, &e), 0);
    wire_in_done(&in);
    assert_true(fcntl(got, F_GETFD) >= 0);
}

static void the_largest_message_fits_and_one_byte_more_does_not(void **state) {
    (void)state;
    AUTO_PAIR p = make_pair();
    struct err e;
    static char big[WIRE_MAX];
    wire_begin(&out, WIRE_C_STDIN);
    wire_put_bytes(&out, big, WIRE_MAX - 4);
    assert_int_equal(wire_send(p.a, &out, &e), WIRE_SENT);
    assert_int_equal(wire_recv(p.b, &in, &e), WIRE_GOT);
    size_t len;
    wire_get_bytes(&in, &len);
    assert_int_equal(len, WIRE_MAX - 4);
    assert_int_equal(wire_end(&in, &e), 0);

    wire_begin(&out, WIRE_C_STDIN);
    wire_put_bytes(&out, big, WIRE_MAX - 3);
    assert_int_equal(wire_send(p.a, &out, &e), WIRE_FAILED);
    wire_begin(&out, WIRE_C_STDIN);
    wire_put_bytes(&out, big, SIZE_MAX);
    assert_int_equal(wire_send(p.a, &out, &e), WIRE_FAILED);
    assert_int_equal(e.code, EMSGSIZE);
}

static void too_many_or_missing_descriptors_are_not_sent(void **state) {
    (void)state;
    struct err e;
    AUTO_PAIR p = make_pair();
    wire_begin(&out, WIRE_W_MADE);
    for (int i = 0; i < WIRE_MAX_FDS; i++)
        wire_put_fd(&out, p.b);
    assert_false(out.bad);
    wire_put_fd(&out, p.b);
    assert_int_equal(wire_send(p.a, &out, &e), WIRE_FAILED);
    wire_begin(&out, WIRE_W_MADE);
    wire_put_fd(&out, -1);
    assert_int_equal(wire_send(p.a, &out, &e), WIRE_FAILED);
}

static void hostile_headers_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint16_t words[2];
        size_t len;
    } cases[] = {
        {"one byte", {WIRE_K_DONE, WIRE_VERSION}, 1},
        {"three bytes", {WIRE_K_DONE, WIRE_VERSION}, 3},
        {"version 0", {WIRE_K_DONE, 0}, 4},
        {"version of the future", {WIRE_K_DONE, WIRE_VERSION + 1}, 4},
        {"no type", {WIRE_TYPE_NONE, WIRE_VERSION}, 4},
        {"one type too many", {WIRE_TYPES_, WIRE_VERSION}, 4},
        {"largest type", {UINT16_MAX, WIRE_VERSION}, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_PAIR p = make_pair();
        AUTO_FD file = memfd_create("t", MFD_CLOEXEC);
        struct err e = {0};
        int before = count_fds();
        send_raw(p.a, cases[i].words, cases[i].len, &file, 1);
        bool of_version = cases[i].len == 4 && cases[i].words[1] != WIRE_VERSION;
        if (wire_recv(p.b, &in, &e) != WIRE_BAD ||
            e.code != (of_version ? EPROTONOSUPPORT : EPROTO))
            fail_msg("%s was taken", cases[i].name);
        wire_in_done(&in);
        assert_int_equal(count_fds(), before);
    }
}

static void an_oversize_packet_is_refused_and_its_descriptors_closed(void **state) {
    (void)state;
    AUTO_PAIR p = make_pair();
    AUTO_FD file = memfd_create("t", MFD_CLOEXEC);
    struct err e;
    static uint8_t big[sizeof in.data + 1];
    uint16_t head[2] = {WIRE_K_DONE, WIRE_VERSION};
    memcpy(big, head, sizeof head);
    int before = count_fds();
    send_raw(p.a, big, sizeof big, &file, 1);
    assert_int_equal(wire_recv(p.b, &in, &e), WIRE_BAD);
    assert_int_equal(e.code, EPROTO);
    wire_in_done(&in);
    assert_int_equal(count_fds(), before);
}

static void surplus_descriptors_are_closed(void **state) {
    (void)state;
    static const struct {
        const char *name;
        size_t sent;
        enum wire_got want;
    } cases[] = {
        {"one that nobody takes", 1, WIRE_GOT},
        {"as many as there may be", WIRE_MAX_FDS, WIRE_GOT},
        {"one too many", WIRE_MAX_FDS + 1, WIRE_BAD},
        {"twice as many", 2 * WIRE_MAX_FDS, WIRE_BAD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_PAIR p = make_pair();
        AUTO_FD file = memfd_create("t", MFD_CLOEXEC);
        int fds[2 * WIRE_MAX_FDS], before = count_fds();
        for (size_t k = 0; k < 2 * WIRE_MAX_FDS; k++)
            fds[k] = file;
        uint16_t head[2] = {WIRE_K_READY, WIRE_VERSION};
        send_raw(p.a, head, sizeof head, fds, cases[i].sent);
        struct err e;
        if (wire_recv(p.b, &in, &e) != cases[i].want)
            fail_msg("%s", cases[i].name);
        wire_in_done(&in);
        if (count_fds() != before)
            fail_msg("%s: %d descriptors left", cases[i].name, count_fds() - before);
    }
}

static void descriptors_without_a_byte_are_not_the_end_but_nonsense(void **state) {
    (void)state;
    AUTO_PAIR p = make_pair();
    AUTO_FD file = memfd_create("t", MFD_CLOEXEC);
    struct err e;
    int before = count_fds();
    send_raw(p.a, NULL, 0, &file, 1);
    assert_int_equal(wire_recv(p.b, &in, &e), WIRE_BAD);
    wire_in_done(&in);
    assert_int_equal(count_fds(), before);
}

static void a_packet_whose_descriptors_find_no_place_can_be_read(void **state) {
    (void)state;
    AUTO_PAIR p = make_pair();
    AUTO_FD file = memfd_create("t", MFD_CLOEXEC);
    const int fds[] = {file, file};
    struct rlimit was, few;
    struct err e;
    wire_begin(&out, WIRE_W_END);
    wire_put_u64(&out, 7);
    send_raw(p.a, out.data, out.len, fds, 2);
    int before = count_fds();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    few = (struct rlimit){.rlim_cur = (rlim_t)file + 2, .rlim_max = was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    enum wire_got got = wire_recv(p.b, &in, &e);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_int_equal(got, WIRE_BAD);
    assert_int_equal(e.code, EMFILE);
    assert_true(in.cut);
    assert_int_equal(in.nfds, 1);
    assert_int_equal(in.type, WIRE_W_END);
    assert_int_equal(wire_get_u64(&in), 7);
    wire_in_done(&in);
    assert_int_equal(count_fds(), before);
}

static void hostile_fields_make_the_message_bad(void **state) {
    (void)state;
    static const struct {
        const char *name, *data;
        size_t len;
    } cases[] = {
#define BYTES(s) s, sizeof s - 1
        {"no length", BYTES("")},
        {"half a length", BYTES("\1\0")},
        {"length of nothing", BYTES("\5\0\0\0")},
        {"length one beyond the end", BYTES("\3\0\0\0a\0")},
        {"length that wraps", BYTES("\377\377\377\377a\0")},
        {"no bytes, not even the NUL", BYTES("\0\0\0\0")},
        {"no NUL at the end", BYTES("\2\0\0\0ab")},
        {"NUL inside", BYTES("\4\0\0\0a\0b\0")},
        {"two NULs at the end", BYTES("\3\0\0\0a\0\0")},
        {"longer than allowed", BYTES("\6\0\0\0abcde\0")},
        {"surplus byte after it", BYTES("\2\0\0\0a\0x")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint16_t head[2] = {WIRE_K_BROKEN, WIRE_VERSION};
        memcpy(in.data, head, sizeof head);
        memcpy(in.data + sizeof head, cases[i].data, cases[i].len);
        struct err e;
        assert_int_equal(wire_open(&in, sizeof head + cases[i].len, &e), 0);
        const char *s = wire_get_str(&in, 4);
        if (wire_end(&in, &e) == 0)
            fail_msg("%s was taken as \"%s\"", cases[i].name, s);
        assert_non_null(s);
        assert_int_equal(e.code, EPROTO);
    }
}

static void after_the_first_fault_every_field_is_empty(void **state) {
    (void)state;
    struct err e;
    uint16_t head[2] = {WIRE_K_DONE, WIRE_VERSION};
    memset(in.data, 1, 64);
    memcpy(in.data, head, sizeof head);
    assert_int_equal(wire_open(&in, 4 + 4 + 12, &e), 0);
    size_t len = 9;
    assert_null(wire_get_bytes(&in, &len)); /* claims 0x01010101 bytes */
    assert_int_equal(len, 0);
    assert_int_equal(wire_get_u32(&in), 0);
    assert_true(wire_get_u64(&in) == 0);
    assert_string_equal(wire_get_str(&in, 100), "");
    assert_int_equal(wire_take_fd(&in), -1);
    assert_int_equal(wire_end(&in, &e), -1);
}

static void a_missing_descriptor_makes_the_message_bad(void **state) {
    (void)state;
    struct err e;
    uint16_t head[2] = {WIRE_C_RUN, WIRE_VERSION};
    memcpy(in.data, head, sizeof head);
    assert_int_equal(wire_open(&in, sizeof head, &e), 0);
    assert_int_equal(wire_take_fd(&in), -1);
    assert_int_equal(wire_end(&in, &e), -1);
}

static void waiting_end_and_full_are_told_apart(void **state) {
    (void)state;
    AUTO_PAIR p = make_pair();
    struct err e;
    assert_int_equal(fd_set_nonblock(p.a, &e), 0);
    assert_int_equal(fd_set_nonblock(p.b, &e), 0);
    assert_int_equal(wire_recv(p.b, &in, &e), WIRE_NONE);
    static char big[WIRE_MAX - 4];
    wire_begin(&out, WIRE_C_STDIN);
    wire_put_bytes(&out, big, sizeof big);
    enum wire_sent sent = WIRE_SENT;
    for (int i = 0; i < 1000 && sent == WIRE_SENT; i++)
        sent = wire_send(p.a, &out, &e);
    assert_int_equal(sent, WIRE_AGAIN);
    assert_int_equal(wire_recv(p.b, &in, &e), WIRE_GOT);
    assert_int_equal(wire_send(p.a, &out, &e), WIRE_SENT);
    fd_close(&p.a);
    enum wire_got got = WIRE_GOT;
    for (int i = 0; i < 1000 && got == WIRE_GOT; i++)
        got = wire_recv(p.b, &in, &e);
    assert_int_equal(got, WIRE_EOF);
    assert_int_equal(wire_send(p.b, &out, &e), WIRE_FAILED);
    assert_int_equal(e.code, EPIPE);
}

static void every_type_has_a_name(void **state) {
    (void)state;
    for (int t = 0; t < WIRE_TYPES_; t++)
        assert_true(strlen(wire_type_name((enum wire_type)t)) > 0);
    assert_string_equal(wire_type_name(WIRE_K_DONE), "K_DONE");
    assert_string_equal(wire_type_name(WIRE_TYPES_), "unknown");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_kind_of_field_comes_out_as_it_went_in, setup),
        cmocka_unit_test_setup(the_largest_message_fits_and_one_byte_more_does_not, setup),
        cmocka_unit_test_setup(too_many_or_missing_descriptors_are_not_sent, setup),
        cmocka_unit_test_setup(hostile_headers_are_refused, setup),
        cmocka_unit_test_setup(an_oversize_packet_is_refused_and_its_descriptors_closed, setup),
        cmocka_unit_test_setup(surplus_descriptors_are_closed, setup),
        cmocka_unit_test_setup(descriptors_without_a_byte_are_not_the_end_but_nonsense, setup),
        cmocka_unit_test_setup(a_packet_whose_descriptors_find_no_place_can_be_read, setup),
        cmocka_unit_test_setup(hostile_fields_make_the_message_bad, setup),
        cmocka_unit_test_setup(after_the_first_fault_every_field_is_empty, setup),
        cmocka_unit_test_setup(a_missing_descriptor_makes_the_message_bad, setup),
        cmocka_unit_test_setup(waiting_end_and_full_are_told_apart, setup),
        cmocka_unit_test_setup(every_type_has_a_name, setup),
    };
    return cmocka_run_group_tests_name("wire/wire", tests, NULL, NULL);
}
