/* cli/input and base/outdir: what goes in, and what may be written on the way out. */

#include "base/fd.h"
#include "base/outdir.h"
#include "cli/input.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Every test works in a directory of its own, which is its working directory. */
static char dir[64];

static int enter(void **state) {
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/test-cli-files-XXXXXX");
    return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int leave(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", dir);
    return chdir("/") == 0 ? system(command) : -1;
}

static void put(const char *name, const char *text) {
    AUTO_FD fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static const char *get(const char *name) {
    static char text[4096];
    struct err e;
    return file_read_at(AT_FDCWD, name, text, sizeof text, &e) == 0 ? text : "(nothing)";
}

static void input_names(void **state) {
    (void)state;
    static const struct {
        const char *behaviour, *spec, *path; /* path NULL: refused with kind */
        const char *kind;
    } cases[] = {
        {"keeps its last name", "sub/a.txt", "a.txt", NULL},
        {"gets a name", "a:b", "b", NULL},
        {"gets a path", "a:x/y/z", "x/y/z", NULL},
        {"into a directory", "sub/a.txt:x/", "x/a.txt", NULL},
        {"an absolute path below the workspace", "a:/workspace/q", "q", NULL},
        {"the workspace itself", "a:/workspace/", "a", NULL},
        {"a name with a colon", "has:colon", "has:colon", NULL},
        {"a colon at the end", "a:", "a", NULL},
        {"dots in names", "a:..b/c..", "..b/c..", NULL},
        {"outside the workspace", "a:/etc/passwd", NULL, "bad_value"},
        {"upwards", "a:../b", NULL, "bad_value"},
        {"upwards in the middle", "a:x/../b", NULL, "bad_value"},
        {"upwards through the workspace", "a:/workspace/../b", NULL, "bad_value"},
        {"not there", "nope", NULL, "no_such_file"},
        {"not there, with a name", "nope:b", NULL, "no_such_file"},
        {"a directory", "sub:b", NULL, "is_directory"},
        {"nothing", "", NULL, "bad_value"},
    };
    put("a", "A");
    put("has:colon", "C");
    assert_int_equal(mkdir("sub", 0700), 0);
    put("sub/a.txt", "T");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct input in = {.fd = -1};
        struct err e = {0};
        int rc = input_open(cases[i].spec, &in, &e);
        if (cases[i].path && (rc < 0 || strcmp(in.path, cases[i].path) != 0))
            fail_msg("%s: %s", cases[i].behaviour, rc < 0 ? e.text : in.path);
        if (!cases[i].path && (rc == 0 || strcmp(e.kind, cases[i].kind) != 0))
            fail_msg("%s: %s %s", cases[i].behaviour, e.kind, e.text);
        input_done(&in);
    }
}

static void a_pipe_is_read_to_its_end(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], "piped", 5), 5);
    close(ends[1]);
    char spec[64];
    snprintf(spec, sizeof spec, "/dev/fd/%d:p", ends[0]);
    struct input in;
    struct err e;
    assert_int_equal(input_open(spec, &in, &e), 0);
    struct stat st;
    assert_int_equal(fstat(in.fd, &st), 0);
    assert_true(S_ISREG(st.st_mode) && st.st_size == 5);
    input_done(&in);
    close(ends[0]);
}

static void programs_have_a_largest_size(void **state) {
    (void)state;
    AUTO_FD fd = open("big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(fd, (16 << 20) + 1), 0);
    AUTO_BUF b = BUF_INIT;
    struct err e;
    assert_int_equal(input_code("big", &b, &e), -1);
    assert_string_equal(e.kind, "too_large");
}

static int write_out(struct outdir *d, const char *name, const char *text, struct err *e) {
    AUTO_FD fd = -1;
    assert_int_equal(memfd_of("t", text, strlen(text), &fd, e), 0);
    return outdir_write(d, name, fd, strlen(text), e);
}

static void files_are_written_and_replaced(void **state) {
    (void)state;
    struct err e;
    assert_int_equal(outdir_check("new/out", &e), 0);
    assert_int_equal(access("new", F_OK), -1);
    struct outdir d = {"new/out", -1, 0};
    assert_int_equal(write_out(&d, "a", "one", &e), 0);
    assert_string_equal(get("new/out/a"), "one");
    AUTO_FD before = open("new/out/a", O_RDONLY | O_CLOEXEC);
    assert_int_equal(write_out(&d, "a", "2", &e), 0);
    assert_string_equal(get("new/out/a"), "2");
    /* Whoever has the old one open keeps it: replaced, not overwritten. */
    char old[4] = "";
    assert_int_equal(read(before, old, 3), 3);
    assert_string_equal(old, "one");
    assert_int_equal(write_out(&d, "x/y/z", "deep", &e), 0);
    assert_string_equal(get("new/out/x/y/z"), "deep");
    outdir_done(&d);
}

static void strangers_names_stay_inside(void **state) {
    (void)state;
    struct err e;
    assert_int_equal(mkdir("out", 0700), 0);
    assert_int_equal(mkdir("out/dir", 0700), 0);
    assert_int_equal(mkdir("outside", 0700), 0);
    assert_int_equal(symlink("../outside", "out/link"), 0);
    put("target", "mine");
    assert_int_equal(symlink("../target", "out/file-link"), 0);
    struct outdir d = {"out", -1, 0};
    static const char *const refused[] = {
        "../evil", "/evil", "x/../../evil", "link/evil", "",    ".",
        "..",      "x//y",  "x/",           "./x",       "dir", "target/../x/..",
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (write_out(&d, refused[i], "evil", &e) == 0)
            fail_msg("written: %s", refused[i]);
        assert_string_equal(e.kind, "output_failed");
    }
    assert_int_equal(access("evil", F_OK), -1);
    assert_int_equal(access("outside/evil", F_OK), -1);
    /* A link in the way of a file is replaced, not followed. */
    assert_int_equal(write_out(&d, "file-link", "new", &e), 0);
    assert_string_equal(get("target"), "mine");
    assert_string_equal(get("out/file-link"), "new");
    /* Nothing half-written stays. */
    assert_int_equal(unlink("out/file-link"), 0);
    assert_int_equal(unlink("out/link"), 0);
    assert_int_equal(rmdir("out/dir"), 0);
    outdir_done(&d);
}

static void places_that_will_not_do_are_found_early(void **state) {
    (void)state;
    struct err e;
    put("file", "");
    static const char *const refused[] = {"", "file", "file/x", "/proc/x"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (outdir_check(refused[i], &e) == 0 && geteuid() != 0)
            fail_msg("not refused: %s", refused[i]);
    assert_int_equal(outdir_check("file", &e), -1);
    assert_int_equal(outdir_check("file/x", &e), -1);
    assert_int_equal(outdir_check("a/b/c", &e), 0);
    assert_int_equal(outdir_check(".", &e), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(input_names, enter, leave),
        cmocka_unit_test_setup_teardown(a_pipe_is_read_to_its_end, enter, leave),
        cmocka_unit_test_setup_teardown(programs_have_a_largest_size, enter, leave),
        cmocka_unit_test_setup_teardown(files_are_written_and_replaced, enter, leave),
        cmocka_unit_test_setup_teardown(strangers_names_stay_inside, enter, leave),
        cmocka_unit_test_setup_teardown(places_that_will_not_do_are_found_early, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
