/* Ranges found in canned files, ranges split, and maps written for real. */

#include "sandbox/idmap.h"

#include "base/fd.h"
#include "sandbox/idmap_write.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const struct find_case {
    const char *behaviour;
    const char *subuid, *subgid;
    uint32_t uid, gid, count; /* count 1: single; 0: an error */
    const char *says;         /* in `why` or in the error */
} find_cases[] = {
    {"a line by name", "alice:100000:65536\n", "alice:200000:65536\n", 100000, 200000, 65536, ""},
    {"a line by uid", "1234:100000:65536\n", "1234:100000:65536\n", 100000, 100000, 65536, ""},
    {"one by name, one by uid", "alice:7:20\n", "1234:9:20\n", 7, 9, 20, ""},
    {"no newline at the end", "alice:100000:65536", "alice:100000:65536", 100000, 100000, 65536,
     ""},
    {"the largest of several lines", "alice:5000:10\nalice:6000:30\nalice:7000:20\n",
     "alice:1:99\n", 6000, 1, 30, ""},
    {"cut to the shorter file", "alice:100000:65536\n", "alice:100000:1000\n", 100000, 100000, 1000,
     ""},
    {"lines of others", "bob:1:2\nalice2:3:4\nalic:5:6\n12345:7:8\nalice:100:50\n",
     "bob:1:2\nalice:100:50\n", 100, 100, 50, ""},
    {"comments and empty lines", "# alice:1:2\n\n\n#\nalice:100:50\n", "alice:100:50\n", 100, 100,
     50, ""},
    {"garbage in lines of others", "bob:x:y\n:::\nbob\nalice:100:50\n", "\xff\nalice:100:50\n", 100,
     100, 50, ""},
    {"the last id there is", "alice:4294901759:65536\n", "alice:4294901759:65536\n", 4294901759u,
     4294901759u, 65536, ""},
    {"ids apart", "bob:165536:65536\nalice:100000:65536\n", "alice:100000:65536\n", 100000, 100000,
     65536, NULL},
    {"ids of the host's users", "alice:1:65536\n", "alice:100000:65536\n", 1, 100000, 65536,
     "from 1 on in /etc/subuid are those of the host's users, too; take the lines of alice"},
    {"groups of the host's users", "alice:100000:65536\n", "alice:1000:65536\n", 100000, 1000,
     65536, "from 1000 on in /etc/subgid"},
    {"another's ids", "bob:165000:65536\nalice:100000:65536\n", "alice:100000:65536\n", 100000,
     100000, 65536, "bob has some of the ids from 100000 on in /etc/subuid, too"},
    {"another's groups", "alice:100000:65536\n", "alice:100000:65536\nbob:90000:10001\n", 100000,
     100000, 65536, "bob has some of the ids from 100000 on in /etc/subgid, too"},
    {"beside another's", "bob:165536:65536\ncarl:34464:65536\nalice:100000:65536\n",
     "alice:100000:65536\n", 100000, 100000, 65536, NULL},
    {"where to go instead", "bob:100000:65536\nalice:100000:65536\n", "alice:100000:65536\n",
     100000, 100000, 65536,
     "usermod --add-subuids 165536-231071 --add-subgids 165536-231071 alice"},
    {"empty files", "", "", 0, 0, 1, "usermod --add-subuids 100000-165535 "},
    {"only one of the files", "alice:100000:65536\n", "", 0, 0, 1,
     "--add-subgids 165536-231071 alice"},
    {"advice beside the ranges of others", "bob:100000:65536\ncarl:165536:65536\n", "", 0, 0, 1,
     "usermod --add-subuids 231072-296607 --add-subgids 231072-296607 alice"},
    {"a range of one id", "alice:100000:1\n", "alice:100000:1\n", 0, 0, 1, "usermod"},
    {"a count of zero", "alice:100000:0\n", "alice:100000:0\n", 0, 0, 1, "usermod"},
    {"root's own id in the range", "alice:0:65536\n", "alice:100000:65536\n", 0, 0, 0,
     "/etc/subuid: \"alice:0:65536\""},
    {"beyond 32 bits", "alice:100000:65536\n", "alice:4294967296:10\n", 0, 0, 0, "/etc/subgid"},
    {"the sum beyond 32 bits", "alice:4294967290:10\n", "alice:1:10\n", 0, 0, 0, "/etc/subuid"},
    {"the id that means none", "alice:4294901760:65536\n", "alice:1:10\n", 0, 0, 0, "/etc/subuid"},
    {"very long numbers", "alice:99999999999999999999999999999:10\n", "", 0, 0, 0, "/etc/subuid"},
    {"words for numbers", "alice:many:ids\n", "", 0, 0, 0, "no range"},
    {"a negative number", "alice:-5:10\n", "", 0, 0, 0, "no range"},
    {"a field missing", "alice:100000\n", "", 0, 0, 0, "no range"},
    {"a field too many", "alice:100000:10:1\n", "", 0, 0, 0, "no range"},
    {"space around numbers", "alice: 100000:10\n", "", 0, 0, 0, "no range"},
};

static void finds_ranges(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof find_cases / sizeof *find_cases; i++) {
        const struct find_case *c = &find_cases[i];
        struct idmap m = {0};
        struct err e = {0};
        int r = idmap_find_in(c->subuid, c->subgid, "alice", 1234, &m, &e);
        char said[1024];
        snprintf(said, sizeof said, "%s%s%s", r < 0 ? e.text : m.odd, m.odd[0] ? "; " : "", m.why);
        if (!c->says && r == 0 && m.odd[0])
            fail_msg("%s: \"%s\"", c->behaviour, said);
        if (c->says && (r != (c->count ? 0 : -1) || !strstr(said, c->says) ||
                        (c->count && m.count != c->count)))
            fail_msg("%s: r=%d count=%u said \"%s\"", c->behaviour, r, m.count, said);
        if (c->count > 1) {
            assert_int_equal(m.uid, c->uid);
            assert_int_equal(m.gid, c->gid);
        }
        if (c->count)
            assert_int_equal(m.single, c->count == 1);
    }
}

static void a_single_id_of_root_is_nobody(void **state) {
    (void)state;
    struct idmap m;
    struct err e;
    if (geteuid() != 0)
        skip();
    assert_int_equal(idmap_find_in("", "", "root", 0, &m, &e), 0);
    assert_true(m.single);
    assert_int_equal(m.uid, 65534);
    assert_int_equal(m.gid, 65534);
}

static const struct part_case {
    const char *behaviour;
    uint32_t count;
    unsigned k, n;
    uint32_t uid, gid, part_count; /* part_count 1: single */
} part_cases[] = {
    {"the whole", 65536, 0, 1, 1000, 2000, 65536},
    {"the first of two", 65536, 0, 2, 1000, 2000, 32768},
    {"the second of two", 65536, 1, 2, 33768, 34768, 32768},
    {"the last of three", 65536, 2, 3, 44690, 45690, 21845},
    {"just enough", 6, 2, 3, 1004, 2004, 2},
    {"too few", 5, 0, 3, 0, 0, 1},
    {"no parts", 65536, 0, 0, 0, 0, 1},
    {"a part that is not there", 65536, 2, 2, 0, 0, 1},
};

static void splits_ranges(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof part_cases / sizeof *part_cases; i++) {
        const struct part_case *c = &part_cases[i];
        struct idmap whole = {.uid = 1000, .gid = 2000, .count = c->count};
        struct idmap part = idmap_part(&whole, c->k, c->n);
        if (part.count != c->part_count || part.single != (c->part_count == 1))
            fail_msg("%s: count %u, single %d", c->behaviour, part.count, part.single);
        if (!part.single && (part.uid != c->uid || part.gid != c->gid))
            fail_msg("%s: %u %u", c->behaviour, part.uid, part.gid);
        assert_int_equal(part.single, *part.why != '\0');
    }
}

static void a_single_id_stays_single_in_parts(void **state) {
    (void)state;
    struct idmap whole = {.single = true, .uid = 7, .gid = 8, .count = 1, .why = "no line"};
    struct idmap part = idmap_part(&whole, 3, 4);
    assert_memory_equal(&part, &whole, sizeof part);
}

/* A child in a new user namespace that waits until its socket is closed. */
struct child {
    pid_t pid;
    int sock;
};

static bool child_start(struct child *c) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return false;
    c->pid = fork();
    if (c->pid == 0) {
        char byte = unshare(CLONE_NEWUSER) < 0 ? 'x' : 'k';
        close(pair[0]);
        if (write(pair[1], &byte, 1) == 1)
            (void)!read(pair[1], &byte, 1);
        _exit(0);
    }
    close(pair[1]);
    c->sock = pair[0];
    char byte = 0;
    return c->pid > 0 && read(c->sock, &byte, 1) == 1 && byte == 'k';
}

static void child_end(struct child *c) {
    close(c->sock);
    assert_int_equal(waitpid(c->pid, NULL, 0), c->pid);
}

static bool map_is(pid_t pid, const char *file, uint32_t first, uint32_t count) {
    char path[64], text[256];
    struct err e;
    unsigned got[3];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    return file_read_at(AT_FDCWD, path, text, sizeof text, &e) == 0 &&
           sscanf(text, "%u %u %u", &got[0], &got[1], &got[2]) == 3 && got[0] == 0 &&
           got[1] == first && got[2] == count;
}

static void root_writes_the_maps(void **state) {
    (void)state;
    if (geteuid() != 0)
        skip();
    const struct idmap maps[] = {
        {.uid = 100000, .gid = 200000, .count = 5000},
        {.single = true, .uid = 65534, .gid = 65534, .count = 1},
    };
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        struct child c;
        struct err e = {0};
        assert_true(child_start(&c));
        if (idmap_write(&maps[i], c.pid, &e) < 0)
            fail_msg("%s", e.text);
        assert_true(map_is(c.pid, "uid_map", maps[i].uid, maps[i].count));
        assert_true(map_is(c.pid, "gid_map", maps[i].gid, maps[i].count));
        child_end(&c);
    }
}

/* In a child of the test: no asserts here. Returns the number of the step that went wrong. */
static int map_as_ordinary_user(void) {
    if (geteuid() == 0 && (setresgid(4321, 4321, 4321) < 0 || setresuid(1234, 1234, 1234) < 0))
        return 1;
    prctl(PR_SET_DUMPABLE, 1); /* or /proc/self belongs to root */
    struct idmap m;
    struct err e;
    if (idmap_find("", &m, &e) < 0)
        return 2;
    if (!m.single || m.helper || m.uid != geteuid() || m.gid != getegid() || !*m.why)
        return 3;
    struct child c;
    if (!child_start(&c))
        return 4;
    if (idmap_write(&m, c.pid, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        return 5;
    }
    bool good = map_is(c.pid, "uid_map", m.uid, 1) && map_is(c.pid, "gid_map", m.gid, 1);
    close(c.sock);
    return good ? 0 : 6;
}

static void an_ordinary_user_maps_itself(void **state) {
    (void)state;
    if (geteuid() != 0)
        skip(); /* who we are may have a range of ids */
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(map_as_ordinary_user());
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void writing_to_a_dead_process_is_an_error(void **state) {
    (void)state;
    struct child c;
    struct err e = {0};
    assert_true(child_start(&c));
    child_end(&c);
    struct idmap m = {.single = true, .uid = geteuid(), .gid = getegid(), .count = 1};
    assert_int_equal(idmap_write(&m, c.pid, &e), -1);
    assert_true(*e.text != '\0');
}

static void the_helpers_reason_is_passed_on(void **state) {
    (void)state;
    if (access("/usr/bin/newuidmap", X_OK) != 0)
        skip();
    struct child c;
    struct err e = {0};
    assert_true(child_start(&c));
    struct idmap m = {.helper = true, .uid = 1, .gid = 1, .count = 70000};
    assert_int_equal(idmap_write(&m, c.pid, &e), -1);
    if (!strstr(e.text, "/newuidmap failed: ") || !strstr(e.text, "not allowed"))
        fail_msg("%s", e.text);
    child_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_ranges),
        cmocka_unit_test(a_single_id_of_root_is_nobody),
        cmocka_unit_test(splits_ranges),
        cmocka_unit_test(a_single_id_stays_single_in_parts),
        cmocka_unit_test(root_writes_the_maps),
        cmocka_unit_test(an_ordinary_user_maps_itself),
        cmocka_unit_test(writing_to_a_dead_process_is_an_error),
        cmocka_unit_test(the_helpers_reason_is_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
