/* config/config: a configuration survives its journey; anything else is refused and leaks nothing.
 */

#include "config/config.h"

#include "base/fd.h"
#include "base/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char *const sites[] = {(char *)"/opt/a", (char *)"/opt/b c"};
static char *const preload[] = {(char *)"json", (char *)"numpy.random"};

static const struct config_part whole = {.reader = CONFIG_SERVER};

/* Borrows everything: never given to config_done. */
static struct config sample(void) {
    return (struct config){
        .socket = (char *)"/run/x/engine.sock",
        .libexec = (char *)"/usr/libexec/cloche",
        .pylib = (char *)"/usr/libexec/cloche/py",
        .id_user = (char *)"",
        .minimum = (char *)"strict,cgroup",
        .cgroup = (char *)"auto",
        .log_level = LOG_DEBUG,
        .max_sandboxes = 64,
        .queue_max = 1,
        .queue_ms = UINT32_MAX,
        .zygote_forks = 2,
        .zygote_age_s = 3,
        .defaults = {1, 2, 3, 4, 5, 6, 7, 8},
        .maxima = {11, 12, 13, 14, 15, 16, 17, UINT64_MAX},
        .nprofiles = 2,
        .profiles = {{.name = (char *)"base", .python = (char *)"/usr/bin/python3", .pool = 4},
                     {.name = (char *)"my-own_1",
                      .python = (char *)"/opt/venv/bin/python",
                      .sites = {(char **)sites, 2},
                      .preload = {(char **)preload, 2},
                      .pool = 0,
                      .zygotes = 9}},
    };
}

static bool holds(int fd, const char *text) {
    char all[8192];
    ssize_t n = pread(fd, all, sizeof all, 0);
    return n > 0 && memmem(all, (size_t)n, text, strlen(text));
}

static void the_gate_gets_no_profile(void **state) {
    (void)state;
    struct config c = sample(), got;
    struct err e;
    AUTO_FD fd = -1;
    c.network_resolvers = (char *)"192.0.2.53";
    const struct config_part part = {.reader = CONFIG_GATE};
    assert_int_equal(config_pack(&c, &part, &fd, &e), 0);
    assert_false(holds(fd, "python"));
    assert_int_equal(config_unpack(fd, &got, &e), 0);
    assert_int_equal(got.nprofiles, 0);
    assert_string_equal(got.network_resolvers, "192.0.2.53");
    config_done(&got);
}

static void each_gets_only_its_part(void **state) {
    (void)state;
    struct config c = sample(), got;
    struct err e;
    c.runtime.efast_token = (char *)"s3cret";
    for (int reader = CONFIG_NURSERY; reader <= CONFIG_SERVER; reader++) {
        AUTO_FD fd = -1;
        const struct config_part part = {(enum config_reader)reader, 1};
        assert_int_equal(config_pack(&c, &part, &fd, &e), 0);
        assert_int_equal(config_unpack(fd, &got, &e), 0);
        assert_int_equal(holds(fd, "s3cret"), reader == CONFIG_SERVER);
        assert_false(holds(fd, "engine.sock")); /* the command line's alone */
        assert_int_equal(holds(fd, "strict,cgroup"), reader != CONFIG_NURSERY);
        assert_int_equal(holds(fd, "/usr/bin/python3"), reader != CONFIG_NURSERY);
        assert_string_equal(got.profiles[0].name, "base");
        assert_string_equal(got.profiles[1].python, "/opt/venv/bin/python");
        assert_int_equal(got.max_sandboxes, 64);
        config_keep_numbers(&got);
        assert_null(got.profiles[1].python);
        assert_int_equal(got.profiles[1].sites.n, 0);
        assert_int_equal(got.profiles[1].zygotes, 9);
        config_done(&got);
    }
}

/* ---- every member of the table ---- */

enum kind { A_TEXT, A_U32, A_U64, A_LIMITS };
/* clang-format off */
#define KIND(member) _Generic(((struct config *)0)->member,                                        \
                              char *: A_TEXT, uint32_t: A_U32, uint64_t: A_U64, struct limits: A_LIMITS)
#define MEMBER(member, reader) {#member, KIND(member), offsetof(struct config, member), reader},
static const struct member {
    const char *name;
    enum kind kind;
    size_t offset;
    enum config_reader least;
} members[] = {
#define SETTING(reader, member, ...) MEMBER(IN member, CONFIG_##reader)
#define FIELD(reader, type, member)  MEMBER(IN member, CONFIG_##reader)
#define LIMITS_OF(reader, member)    MEMBER(IN member, CONFIG_##reader)
#include "config/settings.def"
};
/* clang-format on */
#define MEMBERS (sizeof members / sizeof *members)

/* Another value for each, never empty; small where a larger one makes no sense. */
static uint64_t number_for(size_t i) {
    bool small = members[i].offset == offsetof(struct config, log_level) ||
                 members[i].offset == offsetof(struct config, http.listeners);
    return small ? 1 : 1000 + i;
}

static void fill(struct config *c, size_t i) {
    void *p = (char *)c + members[i].offset;
    switch (members[i].kind) {
    case A_TEXT:
        *(const char **)p = members[i].name;
        break;
    case A_U32:
        *(uint32_t *)p = (uint32_t)number_for(i);
        break;
    case A_U64:
        *(uint64_t *)p = number_for(i);
        break;
    case A_LIMITS:
        for (size_t k = 0; k < LIMITS_; k++)
            limits_set(p, k, 100 * number_for(i) + k);
        break;
    }
}

static void check(const struct config *c, size_t i, bool is_there) {
    const void *p = (const char *)c + members[i].offset;
    bool good = true;
    switch (members[i].kind) {
    case A_TEXT:
        good = strcmp(*(char *const *)p, is_there ? members[i].name : "") == 0;
        break;
    case A_U32:
        good = *(const uint32_t *)p == (is_there ? number_for(i) : 0);
        break;
    case A_U64:
        good = *(const uint64_t *)p == (is_there ? number_for(i) : 0);
        break;
    case A_LIMITS:
        for (size_t k = 0; k < LIMITS_ && good; k++)
            good = limits_value(p, k) == (is_there ? 100 * number_for(i) + k : 0);
        break;
    }
    if (!good)
        fail_msg("%s %s", members[i].name, is_there ? "did not arrive" : "is not for this reader");
}

static void every_member_reaches_those_who_read_it_and_nobody_else(void **state) {
    (void)state;
    struct config c = sample(), got;
    struct err e;
    AUTO_BUF all = BUF_INIT;
    assert_true(MEMBERS > 60);
    for (size_t i = 0; i < MEMBERS; i++)
        fill(&c, i);
    for (int reader = CONFIG_GATE; reader <= CONFIG_SERVER; reader++) {
        AUTO_FD fd = -1;
        const struct config_part part = {(enum config_reader)reader, 1};
        assert_int_equal(config_pack(&c, &part, &fd, &e), 0);
        assert_int_equal(config_unpack(fd, &got, &e), 0);
        for (size_t i = 0; i < MEMBERS; i++)
            check(&got, i, (int)members[i].least <= reader);
        config_done(&got);
    }
    config_encode(&c, &all);
    assert_int_equal(config_decode(all.data, all.len, &got, &e), 0);
    for (size_t i = 0; i < MEMBERS; i++)
        check(&got, i, true);
    config_done(&got);
    static const struct config nothing;
    assert_memory_equal(&got, &nothing, sizeof got);
}

static void a_configuration_arrives_whole(void **state) {
    (void)state;
    struct config c = sample(), got;
    struct err e;
    AUTO_FD fd = -1;
    assert_int_equal(config_pack(&c, &whole, &fd, &e), 0);
    /* Read twice and from anywhere: the warden and the server share the descriptor. */
    for (int round = 0; round < 2; round++) {
        assert_int_equal(lseek(fd, 7, SEEK_SET), 7);
        assert_int_equal(config_unpack(fd, &got, &e), 0);
        assert_string_equal(got.libexec, "/usr/libexec/cloche");
        assert_string_equal(got.id_user, "");
        assert_string_equal(got.minimum, "strict,cgroup");
        assert_int_equal(got.log_level, LOG_DEBUG);
        assert_int_equal(got.queue_ms, UINT32_MAX);
        assert_memory_equal(&got.defaults, &c.defaults, sizeof c.defaults);
        assert_int_equal(got.maxima.open_files, 17);
        assert_true(got.maxima.output_bytes == UINT64_MAX);
        assert_int_equal(got.nprofiles, 2);
        assert_string_equal(got.profiles[1].name, "my-own_1");
        assert_int_equal(got.profiles[1].sites.n, 2);
        assert_string_equal(got.profiles[1].sites.items[1], "/opt/b c");
        assert_string_equal(got.profiles[1].preload.items[1], "numpy.random");
        assert_int_equal(got.profiles[1].binds.n, 0);
        assert_int_equal(got.profiles[1].zygotes, 9);
        config_done(&got);
    }
}

static void a_profile_and_its_twin_find_each_other(void **state) {
    (void)state;
    struct config c = sample(), got;
    struct err e;
    AUTO_FD fd = -1;
    c.live = (struct limits){21, 22, 23, 24, 25, 26, 27, 28};
    c.live_grace_ms = 29;
    c.profiles[c.nprofiles++] = (struct config_profile){
        .name = (char *)"base+live", .python = (char *)"/usr/bin/python3", .live = 1};
    c.profiles[c.nprofiles++] =
        (struct config_profile){.name = (char *)"bas", .python = (char *)"/usr/bin/python3"};
    assert_int_equal(config_pack(&c, &whole, &fd, &e), 0);
    assert_int_equal(config_unpack(fd, &got, &e), 0);
    assert_memory_equal(&got.live, &c.live, sizeof c.live);
    assert_int_equal(got.live_grace_ms, 29);
    static const unsigned twins[] = {2, 4, 0, 4};
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(config_twin(&got, i), twins[i]);
    assert_int_equal(config_named(&got, 4), 3);
    assert_false(config_profile_same(&got.profiles[0], &got.profiles[2]));
    config_done(&got);
}

static void it_cannot_be_changed_on_the_way(void **state) {
    (void)state;
    struct config c = sample();
    struct err e;
    AUTO_FD fd = -1;
    assert_int_equal(config_pack(&c, &whole, &fd, &e), 0);
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(ftruncate(fd, 0), -1);
}

static void every_cut_is_refused(void **state) {
    (void)state;
    struct config c = sample(), got;
    struct err e;
    AUTO_BUF b = BUF_INIT;
    config_encode(&c, &b);
    for (size_t len = 0; len < b.len; len++) {
        /* Exactly so much memory, so that a sanitizer sees a byte too many. */
        AUTO_FREE char *cut = xmalloc(len);
        memcpy(cut, b.data, len);
        assert_int_equal(config_decode(cut, len, &got, &e), -1);
        assert_null(got.socket);
        assert_int_equal(got.nprofiles, 0);
    }
    buf_addc(&b, '\0');
    assert_int_equal(config_decode(b.data, b.len, &got, &e), -1);
}

/* Every 8 bytes in turn become a huge number: lengths and counts are bounded wherever they stand.
 */
static void huge_numbers_are_survived(void **state) {
    (void)state;
    struct config c = sample(), got;
    struct err e;
    AUTO_BUF b = BUF_INIT;
    config_encode(&c, &b);
    static const uint64_t huge[] = {UINT64_MAX, UINT64_MAX / 2, UINT32_MAX, CONFIG_MAX_LIST + 1};
    for (size_t at = 0; at + 8 <= b.len; at++)
        for (size_t k = 0; k < sizeof huge / sizeof huge[0]; k++) {
            AUTO_FREE char *bad = xmalloc(b.len);
            memcpy(bad, b.data, b.len);
            memcpy(bad + at, &huge[k], sizeof huge[k]);
            if (config_decode(bad, b.len, &got, &e) == 0)
                config_done(&got);
        }
}

static void senseless_ones_are_refused(void **state) {
    (void)state;
    static char long_string[CONFIG_MAX_STRING + 2];
    memset(long_string, 'x', sizeof long_string - 1);
    static const struct {
        const char *behaviour, *name, *python;
        uint32_t log_level, live;
    } cases[] = {
        {"empty name", "", "/p", 0},
        {"capital", "Base", "/p", 0},
        {"slash", "a/b", "/p", 0},
        {"33 bytes", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "/p", 0},
        {"the same name twice", "base", "/p", 0},
        {"relative interpreter", "x", "python3", 0},
        {"unknown log level", "x", "/p", LOG_DEBUG + 1},
        {"string too long", "x", long_string, 0},
        {"a twin's name for another", "x+live", "/p", 0},
        {"a twin without its name", "x", "/p", 0, 1},
        {"a twin of nothing", "+live", "/p", 0, 1},
        {"a twin of a twin", "x+live+live", "/p", 0, 1},
        {"neither twin nor not", "x+live", "/p", 0, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct config c = sample();
        c.profiles[1].name = (char *)cases[i].name;
        c.profiles[1].python = (char *)cases[i].python;
        c.log_level = cases[i].log_level;
        c.profiles[1].live = cases[i].live;
        struct err e;
        int fd = -1;
        if (config_pack(&c, &whole, &fd, &e) == 0)
            fail_msg("not refused: %s", cases[i].behaviour);
        assert_int_equal(fd, -1);
    }
}

static void other_descriptors_are_refused(void **state) {
    (void)state;
    struct config got;
    struct err e;
    static const char *const paths[] = {"/dev/null", "/dev/zero", "/", "/proc/self/status"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        AUTO_FD fd = open(paths[i], O_RDONLY | O_CLOEXEC);
        assert_int_equal(config_unpack(fd, &got, &e), -1);
    }
    assert_int_equal(config_unpack(-1, &got, &e), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_configuration_arrives_whole),
        cmocka_unit_test(each_gets_only_its_part),
        cmocka_unit_test(the_gate_gets_no_profile),
        cmocka_unit_test(every_member_reaches_those_who_read_it_and_nobody_else),
        cmocka_unit_test(a_profile_and_its_twin_find_each_other),
        cmocka_unit_test(it_cannot_be_changed_on_the_way),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(huge_numbers_are_survived),
        cmocka_unit_test(senseless_ones_are_refused),
        cmocka_unit_test(other_descriptors_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
