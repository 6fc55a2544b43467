/* config/env_file: what a line means, what is refused, and whose file is read. */

#include "config/env_file.h"

#include "base/buf.h"
#include "base/fd.h"

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

/* All variables as "NAME=[VALUE];". */
static void note(void *arg, const char *name, const char *value) {
    buf_addf(arg, "%s=[%s];", name, value);
}

static const struct good_case {
    const char *behaviour, *text, *variables;
} good_cases[] = {
    {"nothing", "", ""},
    {"blank lines and comments", "\n  \n# A=1\n   # B=2\n", ""},
    {"a variable", "A=1\n", "A=[1];"},
    {"no end of the last line", "A=1\nB=2", "A=[1];B=[2];"},
    {"lines of Windows", "A=1\r\nB='2'\r\n", "A=[1];B=[2];"},
    {"export", "export A=1\nexport\tB=2\n", "A=[1];B=[2];"},
    {"a variable that is called export", "export=1\n", "export=[1];"},
    {"blanks around", "  A = 1 2  \n", "A=[1 2];"},
    {"an empty value", "A=\nB= \nC=''\n", "A=[];B=[];C=[];"},
    {"a comment behind", "A=1 # one\nB= # nothing\n", "A=[1];B=[];"},
    {"a # without a blank is the value's", "A=#1\nB=a#b\n", "A=[#1];B=[a#b];"},
    {"single quotes are as they stand", "A=' $x \\n # \" '\n", "A=[ $x \\n # \" ];"},
    {"double quotes", "A=\" a \\\"b\\\" \\\\ \\$ # \"\n", "A=[ a \"b\" \\ $ # ];"},
    {"escapes", "A=\"1\\n2\\t3\\q\"\n", "A=[1\n2\t3\\q];"},
    {"a comment behind quotes", "A='1' # one\nB=\"2\"\n", "A=[1];B=[2];"},
    {"quotes within a value", "A=it's\n", "A=[it's];"},
    {"equals signs in the value", "A=b=c==\n", "A=[b=c==];"},
    {"nothing is expanded", "A=$HOME `id` ${B}\n", "A=[$HOME `id` ${B}];"},
    {"twice", "A=1\nA=2\n", "A=[1];A=[2];"},
    {"bytes above ASCII", "A=\xc3\xa9\xff\n", "A=[\xc3\xa9\xff];"},
};

static void a_line_means_what_it_says(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof good_cases / sizeof *good_cases; i++) {
        const struct good_case *t = &good_cases[i];
        AUTO_BUF got = BUF_INIT;
        struct err e;
        /* Exactly so much memory, so that a sanitizer sees a byte too many. */
        size_t len = strlen(t->text);
        AUTO_FREE char *text = xmalloc(len);
        memcpy(text, t->text, len);
        if (env_file_parse("f", text, len, note, &got, &e) < 0)
            fail_msg("%s: %s", t->behaviour, e.text);
        if (strcmp(got.data, t->variables) != 0)
            fail_msg("%s: %s", t->behaviour, got.data);
    }
}

static const struct bad_case {
    const char *behaviour, *text;
    size_t len; /* 0: up to the NUL */
    const char *words;
} bad_cases[] = {
    {"no equals sign", "A=1\nsecret\n", 0, "/x/.env: line 2: NAME=VALUE is expected"},
    {"no name", "=1\n", 0, "line 1: NAME=VALUE"},
    {"a name that begins with a digit", "1A=1\n", 0, "line 1: NAME=VALUE"},
    {"a dash in the name", "A-B=1\n", 0, "line 1: NAME=VALUE"},
    {"only export", "export \n", 0, "line 1: NAME=VALUE"},
    {"an open single quote", "#\n\nA='1\nB='2\n", 0, "line 3: the quote is not closed"},
    {"an open double quote", "A=\"1\\\"\n", 0, "line 1: the quote is not closed"},
    {"more behind the quote", "A='1'2\n", 0, "line 1: something stands behind"},
    {"a # at the quote", "A='1'#2\n", 0, "line 1: something stands behind"},
    {"a NUL byte", "A=1\nB=\0", 7, "line 2: a NUL byte"},
};

static void what_is_wrong_names_the_line_and_no_value(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_cases / sizeof *bad_cases; i++) {
        const struct bad_case *t = &bad_cases[i];
        AUTO_BUF got = BUF_INIT;
        struct err e;
        size_t len = t->len ? t->len : strlen(t->text);
        if (env_file_parse("/x/.env", t->text, len, note, &got, &e) == 0)
            fail_msg("%s: not refused", t->behaviour);
        if (!strstr(e.text, t->words) || strcmp(e.kind, "bad_config") != 0)
            fail_msg("%s: %s: %s", t->behaviour, e.kind, e.text);
        assert_null(strstr(e.text, "secret"));
    }
}

static char dir[] = "/tmp/test-env-file-XXXXXX";

static int make_dir(void **state) {
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state) {
    (void)state;
    return rmdir(dir);
}

/* Writes the file, reads it and removes it. */
static int read_file(const char *text, mode_t mode, uid_t owner, bool *ret_read, struct err *e) {
    char path[64];
    AUTO_BUF got = BUF_INIT;
    snprintf(path, sizeof path, "%s/.env", dir);
    AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_int_equal(fd_write_all(fd, text, strlen(text), e), 0);
    assert_int_equal(fchmod(fd, mode), 0);
    if (owner != geteuid())
        assert_int_equal(fchown(fd, owner, (gid_t)-1), 0);
    int rc = env_file_read(path, note, &got, ret_read, e);
    assert_int_equal(unlink(path), 0);
    return rc;
}

static void a_file_of_others_is_refused(void **state) {
    (void)state;
    struct err e;
    bool is_read;
    assert_int_equal(read_file("A=1\n", 0644, geteuid(), &is_read, &e), 0);
    assert_true(is_read);
    static const mode_t open_to_others[] = {0664, 0646, 0666, 0602};
    for (size_t i = 0; i < sizeof open_to_others / sizeof *open_to_others; i++) {
        assert_int_equal(read_file("A=1\n", open_to_others[i], geteuid(), &is_read, &e), -1);
        assert_string_equal(e.kind, "foreign_path");
        assert_false(is_read);
    }
    if (geteuid() != 0)
        return;
    assert_int_equal(read_file("A=1\n", 0600, 12345, &is_read, &e), -1);
    assert_non_null(strstr(e.text, "uid 12345"));
}

static void a_large_file_is_refused(void **state) {
    (void)state;
    struct err e;
    bool is_read;
    AUTO_FREE char *text = xmalloc(ENV_FILE_MAX + 2);
    memset(text, '#', ENV_FILE_MAX + 1);
    text[ENV_FILE_MAX + 1] = '\0';
    assert_int_equal(read_file(text, 0600, geteuid(), &is_read, &e), -1);
    assert_non_null(strstr(e.text, "more than 65536 bytes"));
    text[ENV_FILE_MAX] = '\0';
    assert_int_equal(read_file(text, 0600, geteuid(), &is_read, &e), 0);
}

static void what_is_no_file_is_refused_and_what_is_not_there_is_none(void **state) {
    (void)state;
    struct err e;
    AUTO_BUF got = BUF_INIT;
    bool is_read = true;
    char path[64];
    snprintf(path, sizeof path, "%s/.env", dir);
    assert_int_equal(env_file_read(path, note, &got, &is_read, &e), 0);
    assert_false(is_read);
    assert_int_equal(mkfifo(path, 0600), 0); /* and nobody waits for its writer */
    assert_int_equal(env_file_read(path, note, &got, &is_read, &e), -1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(env_file_read(dir, note, &got, &is_read, &e), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_means_what_it_says),
        cmocka_unit_test(what_is_wrong_names_the_line_and_no_value),
        cmocka_unit_test(a_file_of_others_is_refused),
        cmocka_unit_test(a_large_file_is_refused),
        cmocka_unit_test(what_is_no_file_is_refused_and_what_is_not_there_is_none),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
