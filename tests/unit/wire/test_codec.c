/* wire/codec: every payload of messages.h survives the journey, and a forged one does not. The
 * tests walk the same tables as the codec, so that a new message is tested by being in the list. */

#include "base/fd.h"
#include "wire/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define SIZE_MOST 1024

static struct wire_out out, again, lowered;
static struct wire_in in;
static union {
    uint64_t align;
    char bytes[SIZE_MOST];
} sent, got;
static int file = -1;

static int setup(void **state) {
    (void)state;
    file = memfd_create("t", MFD_CLOEXEC);
    return file < 0;
}

static int teardown(void **state) {
    (void)state;
    fd_close(&file);
    return 0;
}

static void fill_field(const struct wire_field *f, void *at, unsigned seed) {
    static const char strs[] = "\2\0\0\0a\0\1\0\0\0\0"; /* "a" and "" */
    switch (f->kind) {
    case WIRE_u32:
        *(uint32_t *)at = f->most ? f->most : 1000 + seed;
        break;
    case WIRE_u64:
        *(uint64_t *)at = UINT64_MAX - seed;
        break;
    case WIRE_str:
    case WIRE_text:
        *(const char **)at = seed % 2 ? "ein Weg/grün" : "";
        break;
    case WIRE_bytes:
        *(struct wire_bytes *)at = (struct wire_bytes){"a\0b", 3};
        break;
    case WIRE_strs:
        *(struct wire_strs *)at = (struct wire_strs){2, (const uint8_t *)strs, sizeof strs - 1};
        break;
    case WIRE_limits:
        *(struct limits *)at = (struct limits){.memory_mb = seed, .output_bytes = UINT64_MAX};
        break;
    case WIRE_fd:
    case WIRE_fd_or:
        *(int *)at = file;
        break;
    case WIRE_fds:
        *(struct wire_fds *)at = (struct wire_fds){2, {file, file}};
        break;
    case WIRE_fd_map:
        for (uint32_t k = 0; k < f->most; k++)
            ((int *)at)[k] = k % 3 == 1 ? -1 : file;
        break;
    }
}

static void fill(const struct wire_layout *l) {
    memset(&sent, 0, sizeof sent);
    for (size_t k = 0; k < l->nfields; k++)
        fill_field(&l->fields[k], sent.bytes + l->fields[k].offset, (unsigned)k);
}

/* What a peer gets to see of `out`, cut to len bytes, with nfds descriptors. */
static void deliver(size_t len, unsigned nfds) {
    struct err e;
    memset(&in, 0, sizeof in);
    memcpy(in.data, out.data, len);
    assert_int_equal(wire_open(&in, len, &e), 0);
    for (; in.nfds < nfds; in.nfds++)
        in.fds[in.nfds] = fcntl(file, F_DUPFD_CLOEXEC, 3);
}

#define EACH_PAYLOAD(l)                                                                            \
    for (unsigned which_ = 0; which_ < WIRE_PAYLOADS_; which_++)                                   \
        for (const struct wire_layout *l = wire_layout((enum wire_payload)which_); l; l = NULL)

static void every_payload_arrives_whole(void **state) {
    (void)state;
    struct err e;
    EACH_PAYLOAD(l) {
        assert_true(l->size <= SIZE_MOST);
        fill(l);
        wire_put(&out, l, &sent);
        assert_false(out.bad);
        deliver(out.len, out.nfds);
        assert_int_equal(wire_get(&in, l, &got, &e), 0);
        wire_put(&again, l, &got);
        if (again.bad || again.len != out.len || again.nfds != out.nfds ||
            memcmp(again.data, out.data, out.len) != 0)
            fail_msg("%s changed on its way", wire_type_name(l->type));
        wire_in_done(&in);
    }
}

static void every_payload_cut_anywhere_is_refused(void **state) {
    (void)state;
    struct err e;
    EACH_PAYLOAD(l) {
        fill(l);
        wire_put(&out, l, &sent);
        for (size_t len = 4; len < out.len; len++) {
            deliver(len, out.nfds);
            if (wire_get(&in, l, &got, &e) == 0)
                fail_msg("%s: %zu of %zu bytes were taken", wire_type_name(l->type), len, out.len);
            wire_in_done(&in);
        }
    }
}

static void surplus_bytes_are_refused(void **state) {
    (void)state;
    struct err e;
    EACH_PAYLOAD(l) {
        fill(l);
        wire_put(&out, l, &sent);
        out.data[out.len] = 0;
        deliver(out.len + 1, out.nfds);
        assert_int_equal(wire_get(&in, l, &got, &e), -1);
        assert_non_null(strstr(e.text, "1 bytes too many"));
        wire_in_done(&in);
    }
}

static bool has_optional(const struct wire_layout *l) {
    for (size_t k = 0; k < l->nfields; k++)
        if (l->fields[k].kind == WIRE_fd_or)
            return true;
    return false;
}

static void descriptors_are_counted(void **state) {
    (void)state;
    struct err e;
    EACH_PAYLOAD(l) {
        fill(l);
        wire_put(&out, l, &sent);
        if (out.nfds && !has_optional(l)) {
            deliver(out.len, out.nfds - 1);
            assert_int_equal(wire_get(&in, l, &got, &e), -1);
            wire_in_done(&in);
        }
        deliver(out.len, out.nfds + 1);
        assert_int_equal(wire_get(&in, l, &got, &e), l->surplus ? 0 : -1);
        wire_in_done(&in);
    }
}

static void a_refused_payload_has_no_null_string_and_no_descriptor(void **state) {
    (void)state;
    struct err e;
    EACH_PAYLOAD(l) {
        wire_begin(&out, l->type == WIRE_K_READY ? WIRE_I_NET : WIRE_K_READY);
        deliver(out.len, 0);
        assert_int_equal(wire_get(&in, l, &got, &e), -1);
        for (size_t k = 0; k < l->nfields; k++) {
            const void *at = got.bytes + l->fields[k].offset;
            if (l->fields[k].kind == WIRE_str || l->fields[k].kind == WIRE_text)
                assert_string_equal(*(const char *const *)at, "");
            if (l->fields[k].kind == WIRE_fd || l->fields[k].kind == WIRE_fd_map)
                assert_int_equal(*(const int *)at, -1);
        }
    }
}

static void another_type_is_refused(void **state) {
    (void)state;
    struct err e;
    struct w_end m;
    w_lost_put(&out, &(struct w_lost){.sandbox = 7});
    deliver(out.len, 0);
    assert_int_equal(w_end_get(&in, &m, &e), -1);
    assert_string_equal(e.text, "W_LOST where W_END was expected");
}

static void what_is_beyond_its_bound_is_refused(void **state) {
    (void)state;
    struct err e;
    struct i_list m;
    struct n_state s;
    n_state_put(&out, &(struct n_state){.state = PROFILE_RESTARTING + 1});
    deliver(out.len, 0);
    assert_int_equal(n_state_get(&in, &s, &e), -1);
    static char path[WIRE_PATH + 2];
    memset(path, 'x', sizeof path - 1);
    i_list_put(&out, &(struct i_list){.path = path});
    deliver(out.len, 0);
    assert_int_equal(i_list_get(&in, &m, &e), -1);
    path[WIRE_PATH] = '\0';
    i_list_put(&out, &(struct i_list){.path = path});
    assert_false(out.bad);
    deliver(out.len, 0);
    assert_int_equal(i_list_get(&in, &m, &e), 0);
    n_make_put(&out, &(struct n_make){.procs = {.n = PROCS_FDS + 1}});
    assert_true(out.bad);
}

static void words_for_people_are_cut_between_characters(void **state) {
    (void)state;
    struct err e;
    struct i_error m;
    char why[400];
    memset(why, 'x', sizeof why);
    memcpy(why + 299, "ü", 2);
    why[sizeof why - 1] = '\0';
    i_error_put(&out, &(struct i_error){.errnum = 1, .why = why});
    assert_false(out.bad);
    deliver(out.len, 0);
    assert_int_equal(i_error_get(&in, &m, &e), 0);
    assert_int_equal(strlen(m.why), 299);
}

static void a_list_of_strings_is_read_one_by_one(void **state) {
    (void)state;
    struct err e;
    struct k_exec m;
    AUTO_BUF raw = BUF_INIT;
    wire_strs_add(&raw, "echo");
    wire_strs_add(&raw, "");
    k_exec_put(&out, &(struct k_exec){.directory = "d",
                                      .args = {2, (const uint8_t *)raw.data, raw.len},
                                      .terminal = -1});
    deliver(out.len, 0);
    assert_int_equal(k_exec_get(&in, &m, &e), 0);
    assert_string_equal(wire_strs_next(&m.args), "echo");
    assert_string_equal(wire_strs_next(&m.args), "");
    assert_null(wire_strs_next(&m.args));
    assert_null(wire_strs_next(&m.env));
    assert_int_equal(m.terminal, -1);
    size_t env = 4, args = raw.len + 4; /* at the end; before it */
    out.data[out.len - env - args]++;   /* one string more than there are */
    deliver(out.len, 0);
    assert_int_equal(k_exec_get(&in, &m, &e), -1);
}

static void an_unknown_limit_must_be_nothing(void **state) {
    (void)state;
    struct err e;
    struct k_live m;
    k_live_put(&out, &(struct k_live){.limits = {.pids = 7}});
    out.data[4]--; /* an older peer has one less */
    deliver(out.len - 8, 0);
    assert_int_equal(k_live_get(&in, &m, &e), 0);
    assert_int_equal(m.limits.pids, 7);
    out.data[4] += 2; /* a newer one has one more, which does not matter while it is not used */
    memset(out.data + out.len, 0, 8);
    deliver(out.len + 8, 0);
    assert_int_equal(k_live_get(&in, &m, &e), 0);
    out.data[out.len] = 1;
    deliver(out.len + 8, 0);
    assert_int_equal(k_live_get(&in, &m, &e), -1);
}

static void a_descriptor_that_is_kept_outlives_its_message(void **state) {
    (void)state;
    struct err e;
    struct n_made m;
    struct n_made from = {.sandbox = 7};
    memset(from.fds, 0xff, sizeof from.fds);
    from.fds[SANDBOX_CTL] = from.fds[SANDBOX_SNMP] = file;
    n_made_put(&out, &from);
    deliver(out.len, 2);
    assert_int_equal(n_made_get(&in, &m, &e), 0);
    assert_int_equal(m.fds[SANDBOX_REQ], -1);
    AUTO_FD kept = wire_keep(&in, m.fds[SANDBOX_SNMP]);
    wire_in_done(&in);
    assert_int_equal(fcntl(m.fds[SANDBOX_CTL], F_GETFD), -1);
    assert_true(fcntl(kept, F_GETFD) >= 0);
}

static void a_message_without_payload_brings_nothing(void **state) {
    (void)state;
    struct err e;
    wire_begin(&out, WIRE_I_NET);
    deliver(out.len, 0);
    assert_int_equal(wire_get_nothing(&in, &e), 0);
    deliver(out.len, 1);
    assert_int_equal(wire_get_nothing(&in, &e), -1);
    wire_in_done(&in);
}

static void a_cut_message_says_that_descriptors_ran_out(void **state) {
    (void)state;
    struct err e;
    struct w_keep m;
    w_keep_put(&out, &(struct w_keep){.sandbox = 7, .journal = file});
    deliver(out.len, 0);
    in.cut = true;
    assert_int_equal(w_keep_get(&in, &m, &e), -1);
    assert_int_equal(e.code, EMFILE);
    assert_int_equal(m.sandbox, 7);
}

/* ---- versions ---- */

/* A message that got a number in the next version, and a string and a descriptor in the one after
 * that. */
struct grown {
    uint64_t id;
    uint32_t number;
    const char *name;
    int fd;
};
static const struct wire_field grown_fields[] = {
    {WIRE_u64, 0, offsetof(struct grown, id), 0},
    {WIRE_u32, WIRE_VERSION + 1, offsetof(struct grown, number), 0},
    {WIRE_str, WIRE_VERSION + 2, offsetof(struct grown, name), 10},
    {WIRE_fd, WIRE_VERSION + 2, offsetof(struct grown, fd), 0},
};
static const struct wire_layout grown = {WIRE_W_END, sizeof(struct grown), false, 4, grown_fields};

static void an_older_packet_lacks_the_newer_fields(void **state) {
    (void)state;
    struct err e;
    struct grown m;
    w_end_put(&out, &(struct w_end){.sandbox = 7});
    deliver(out.len, 0);
    assert_int_equal(wire_get(&in, &grown, &m, &e), 0);
    assert_int_equal(m.id, 7);
    assert_int_equal(m.number, 0);
    assert_string_equal(m.name, "");
    assert_int_equal(m.fd, -1);
}

static void an_older_peer_gets_what_it_knows(void **state) {
    (void)state;
    struct err e;
    struct grown m = {.id = 7, .number = 8, .name = "n", .fd = file};
    wire_put(&again, &grown, &m);
    assert_int_equal(again.nfds, 1);
    for (unsigned version = WIRE_VERSION; version <= WIRE_VERSION + 2; version++) {
        assert_true(wire_lower(&again, (uint16_t)version, &lowered));
        out = lowered;
        uint16_t head[2];
        memcpy(head, out.data, sizeof head);
        assert_int_equal(head[1], version);
        head[1] = WIRE_VERSION; /* or we would refuse it ourselves */
        memcpy(out.data, head, sizeof head);
        deliver(out.len, out.nfds);
        in.version = (uint16_t)version;
        assert_int_equal(wire_get(&in, &grown, &m, &e), 0);
        assert_int_equal(m.number, version > WIRE_VERSION ? 8 : 0);
        assert_int_equal(m.fd >= 0, version > WIRE_VERSION + 1);
        wire_in_done(&in);
    }
    assert_false(wire_lower(&again, WIRE_OLDEST - 1, &lowered));
}

static void a_version_that_is_not_known_is_refused_and_said(void **state) {
    (void)state;
    const uint16_t unknown[] = {0, WIRE_OLDEST - 1, WIRE_VERSION + 1, UINT16_MAX};
    for (size_t k = 0; k < sizeof unknown / sizeof *unknown; k++) {
        struct err e;
        const uint16_t head[2] = {WIRE_I_NET, unknown[k]};
        memcpy(in.data, head, sizeof head);
        assert_int_equal(wire_open(&in, sizeof head, &e), -1);
        assert_int_equal(e.code, EPROTONOSUPPORT);
        assert_non_null(strstr(e.text, "this program understands"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_payload_arrives_whole),
        cmocka_unit_test(every_payload_cut_anywhere_is_refused),
        cmocka_unit_test(surplus_bytes_are_refused),
        cmocka_unit_test(descriptors_are_counted),
        cmocka_unit_test(a_refused_payload_has_no_null_string_and_no_descriptor),
        cmocka_unit_test(another_type_is_refused),
        cmocka_unit_test(what_is_beyond_its_bound_is_refused),
        cmocka_unit_test(words_for_people_are_cut_between_characters),
        cmocka_unit_test(a_list_of_strings_is_read_one_by_one),
        cmocka_unit_test(an_unknown_limit_must_be_nothing),
        cmocka_unit_test(a_descriptor_that_is_kept_outlives_its_message),
        cmocka_unit_test(a_message_without_payload_brings_nothing),
        cmocka_unit_test(a_cut_message_says_that_descriptors_ran_out),
        cmocka_unit_test(an_older_packet_lacks_the_newer_fields),
        cmocka_unit_test(an_older_peer_gets_what_it_knows),
        cmocka_unit_test(a_version_that_is_not_known_is_refused_and_said),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
