/* init/files: what the server may ask of a workspace, and what a hostile tree does to it. */

#include "base/fd.h"
#include "init/files.h"
#include "wire/entry.h"
#include "wire/fields.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char top[64];
static int workspace;
static struct wire_out question;
static struct wire_out answer;
static struct wire_in reply;
static int got_fd = -1;

static int make_workspace(void **state) {
    (void)state;
    snprintf(top, sizeof top, "/dev/shm/cloche-test-XXXXXX");
    if (!mkdtemp(top))
        return -1;
    workspace = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return workspace < 0 ? -1 : 0;
}

static int remove_workspace(void **state) {
    (void)state;
    char command[100];
    fd_close(&workspace);
    fd_close(&got_fd);
    snprintf(command, sizeof command, "rm -rf %s", top);
    return system(command); /* NOLINT: the name is ours */
}

static uint32_t uid(void) {
    return getuid() ? getuid() : 4242;
}

/* Asks as the server does; the errno of the answer, 0 for a reply. */
static int ask(int fd) {
    static struct wire_in in;
    struct err e;
    memset(&in, 0, sizeof in);
    memcpy(in.data, question.data, question.len);
    assert_int_equal(wire_open(&in, question.len, &e), 0);
    if (fd >= 0)
        in.fds[in.nfds++] = dup(fd);
    fd_close(&got_fd);
    assert_true(files_serve(&in, workspace, uid(), &answer, &got_fd));
    assert_int_equal(in.nfds, 0); /* whoever hears the answer may run the file */
    memset(&reply, 0, sizeof reply);
    memcpy(reply.data, answer.data, answer.len);
    assert_int_equal(wire_open(&reply, answer.len, &e), 0);
    return reply.type == WIRE_I_REPLY ? 0 : (int)wire_get_u32(&reply);
}

static void begin(enum wire_type type, const char *path) {
    wire_begin(&question, type);
    wire_put_str(&question, path);
}

static int ask_u32(enum wire_type type, const char *path, uint32_t v) {
    begin(type, path);
    wire_put_u32(&question, v);
    return ask(-1);
}

static int ask_open(const char *path, uint32_t flags) {
    wire_begin(&question, WIRE_I_OPEN);
    wire_put_u32(&question, flags);
    wire_put_u32(&question, 0644);
    wire_put_str(&question, path);
    return ask(-1);
}

static int ask_mkdir(const char *path, bool parents) {
    begin(WIRE_I_MKDIR, path);
    wire_put_u32(&question, 0755);
    wire_put_u32(&question, parents);
    return ask(-1);
}

static int ask_move(const char *from, const char *to) {
    begin(WIRE_I_MOVE, from);
    wire_put_str(&question, to);
    return ask(-1);
}

static int ask_link(const char *target, const char *path) {
    begin(WIRE_I_LINK, target);
    wire_put_str(&question, path);
    return ask(-1);
}

static int ask_stat(const char *path, struct entry *ret) {
    begin(WIRE_I_STAT, path);
    int r = ask(-1);
    size_t len;
    const uint8_t *at = r ? NULL : wire_get_bytes(&reply, &len);
    if (at)
        assert_true(entry_get(&at, at + len, ret));
    return r;
}

/* Writes a file as uploads do. */
static int put(const char *path, const char *text) {
    wire_begin(&question, WIRE_I_TEMP);
    int r = ask(-1);
    if (r)
        return r;
    AUTO_FD temp = fd_take(&got_fd);
    assert_int_equal(write(temp, text, strlen(text)), strlen(text));
    begin(WIRE_I_PLACE, path);
    wire_put_u32(&question, 0640);
    wire_put_u64(&question, 1234567890123456789u);
    return ask(temp);
}

static void holds(const char *path, const char *text) {
    char buf[100];
    assert_int_equal(ask_open(path, O_RDONLY), 0);
    ssize_t n = read(got_fd, buf, sizeof buf);
    assert_int_equal(n, strlen(text));
    assert_memory_equal(buf, text, strlen(text));
}

static char listed[1 << 18];
static bool cut;

/* The paths, each with a space behind it. */
static int list(const char *path, bool recursive, uint32_t most, const char *after) {
    begin(WIRE_I_LIST, path);
    wire_put_u32(&question, recursive);
    wire_put_u32(&question, most);
    wire_put_str(&question, after);
    listed[0] = '\0';
    int r = ask(-1);
    if (r)
        return r;
    static uint8_t data[1 << 22];
    uint32_t count = wire_get_u32(&reply);
    cut = wire_get_u32(&reply);
    ssize_t len = pread(got_fd, data, sizeof data, 0);
    const uint8_t *at = data, *end = data + len;
    size_t used = 0;
    for (; at < end; count--) {
        struct entry f;
        assert_true(entry_get(&at, end, &f));
        used += (size_t)snprintf(listed + used, sizeof listed - used, "%s ", f.path);
        assert_true(used < sizeof listed);
    }
    assert_int_equal(count, 0);
    return 0;
}

static void uploads_appear_whole_and_belong_to_the_sandbox(void **state) {
    (void)state;
    struct entry f;
    struct stat st;
    assert_int_equal(put("a/b/c.txt", "one"), 0);
    assert_int_equal(wire_get_u32(&reply), 0);
    holds("a/b/c.txt", "one");
    assert_int_equal(put("a/b/c.txt", "other"), 0);
    assert_int_equal(wire_get_u32(&reply), 1);
    holds("a/b/c.txt", "other");
    assert_int_equal(ask_stat("a/b/c.txt", &f), 0);
    assert_int_equal(f.type, ENTRY_FILE);
    assert_int_equal(f.mode, 0640);
    assert_true(f.size == 5 && f.mtime_ns == 1234567890123456789u);
    static const char *const owned[] = {"a", "a/b", "a/b/c.txt"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fstatat(workspace, owned[i], &st, 0), 0);
        assert_int_equal(st.st_uid, uid());
    }
    assert_int_equal(list("", true, 100, ""), 0);
    assert_string_equal(listed, "a a/b a/b/c.txt "); /* and no temporary name */
}

static void an_upload_replaces_files_and_links_only(void **state) {
    (void)state;
    struct entry f;
    assert_int_equal(ask_mkdir("dir", false), 0);
    assert_int_equal(put("dir", "x"), EISDIR);
    assert_int_equal(mkfifoat(workspace, "fifo", 0666), 0);
    assert_int_equal(put("fifo", "x"), EEXIST);
    assert_int_equal(put("target", "safe"), 0);
    assert_int_equal(symlinkat("target", workspace, "link"), 0);
    assert_int_equal(put("link", "x"), 0);
    holds("target", "safe");
    holds("link", "x");
    assert_int_equal(put("target/below", "x"), ENOTDIR);
    assert_int_equal(put("", "x"), EINVAL);
    assert_int_equal(put("dir/..", "x"), EINVAL);
    assert_int_equal(ask_stat("link", &f), 0);
    assert_int_equal(f.type, ENTRY_FILE);
}

static void only_files_of_ours_without_a_name_get_one(void **state) {
    (void)state;
    AUTO_FD named = openat(workspace, "named", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    AUTO_FD other = memfd_create("other", MFD_CLOEXEC);
    const int wrong[] = {named, other, workspace};
    for (int i = 0; i < 3; i++) {
        begin(WIRE_I_PLACE, "stolen");
        wire_put_u32(&question, 0644);
        wire_put_u64(&question, 0);
        assert_int_equal(ask(wrong[i]), EINVAL);
    }
}

static void no_path_leads_out(void **state) {
    (void)state;
    struct entry f;
    assert_int_equal(symlinkat("/etc", workspace, "abs"), 0);
    assert_int_equal(symlinkat("..", workspace, "up"), 0);
    static const char *const paths[] = {"../x", "/etc/x", "abs/x", "up/x", "a/../../x"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        assert_int_not_equal(ask_open(paths[i], O_RDONLY), 0);
        assert_int_not_equal(ask_open(paths[i], O_WRONLY | O_CREAT), 0);
        assert_int_not_equal(ask_stat(paths[i], &f), 0);
        assert_int_not_equal(put(paths[i], "x"), 0);
        assert_int_not_equal(ask_mkdir(paths[i], true), 0);
        assert_int_not_equal(ask_link("t", paths[i]), 0);
        assert_int_not_equal(ask_u32(WIRE_I_REMOVE, paths[i], 1), 0);
        assert_int_not_equal(ask_u32(WIRE_I_CHMOD, paths[i], 0600), 0);
        assert_int_not_equal(list(paths[i], true, 10, ""), 0);
    }
    assert_int_equal(put("here", "x"), 0);
    assert_int_not_equal(ask_move("here", "up/there"), 0);
    assert_int_not_equal(ask_move("abs/passwd", "there"), 0);
    assert_int_equal(list("abs", false, 10, ""), ENOTDIR);
    assert_int_equal(ask_u32(WIRE_I_CHMOD, "abs", 0600), ELOOP);
    assert_int_equal(ask_u32(WIRE_I_REMOVE, "up", 1), 0); /* the link, not what it leads to */
    assert_int_equal(ask_stat("here", &f), 0);
}

static void a_link_that_stays_inside_is_followed_on_the_way(void **state) {
    (void)state;
    assert_int_equal(ask_mkdir("real/deep", true), 0);
    assert_int_equal(ask_link("real/deep", "short"), 0);
    assert_int_equal(put("short/new/f", "x"), 0);
    holds("real/deep/new/f", "x");
    struct entry f;
    assert_int_equal(ask_stat("short", &f), 0);
    assert_int_equal(f.type, ENTRY_SYMLINK);
    assert_string_equal(f.target, "real/deep");
    assert_int_equal(ask_link("nowhere", "dangling"), 0);
    assert_int_equal(put("dangling/f", "x"), ENOENT);
}

static void what_would_block_does_not(void **state) {
    (void)state;
    assert_int_equal(mkfifoat(workspace, "fifo", 0666), 0);
    assert_int_equal(ask_open("fifo", O_RDONLY), ENXIO);
    assert_int_equal(ask_open("fifo", O_WRONLY), ENXIO);
    assert_int_equal(put("leased", "x"), 0);
    signal(SIGIO, SIG_IGN);
    AUTO_FD held = openat(workspace, "leased", O_RDONLY | O_CLOEXEC);
    assert_int_equal(fchown(held, getuid(), getgid()), 0);
    assert_int_equal(fcntl(held, F_SETLEASE, F_RDLCK), 0);
    assert_int_equal(ask_open("leased", O_WRONLY), EWOULDBLOCK);
    assert_int_equal(ask_u32(WIRE_I_CHMOD, "leased", 0600), 0);
    assert_int_equal(put("leased", "y"), 0);
    holds("leased", "y");
}

static void moves_replace_nothing(void **state) {
    (void)state;
    struct entry f;
    assert_int_equal(put("a", "a"), 0);
    assert_int_equal(put("b", "b"), 0);
    assert_int_equal(ask_move("a", "b"), EEXIST);
    assert_int_equal(ask_move("none", "c"), ENOENT);
    assert_int_equal(ask_stat("d", &f), ENOENT);
    assert_int_equal(ask_move("a", "d/e/f"), 0);
    holds("d/e/f", "a");
    assert_int_equal(ask_move("d", "d/e/inside"), EINVAL);
    assert_int_equal(ask_move("", "x"), EINVAL);
    assert_int_equal(ask_mkdir("b", true), EEXIST);
    assert_int_equal(ask_mkdir("x/y", false), ENOENT);
}

static void pages_go_on_where_the_last_ended(void **state) {
    (void)state;
    static const char *const files[] = {"b", "a/2", "a/1/x", "a.txt", "a/1.txt", "c/d/e"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_int_equal(put(files[i], "x"), 0);
    assert_int_equal(list("", false, 100, ""), 0);
    assert_string_equal(listed, "a a.txt b c ");
    assert_int_equal(list("", true, 100, ""), 0);
    static const char all[] = "a a/1 a/1/x a/1.txt a/2 a.txt b c c/d c/d/e ";
    assert_string_equal(listed, all);
    assert_false(cut);
    char sum[200] = "", last[100] = "";
    do {
        assert_int_equal(list("", true, 1, last), 0);
        strcat(sum, listed); /* NOLINT */
        snprintf(last, sizeof last, "%.*s", (int)strcspn(listed, " "), listed);
    } while (cut);
    assert_string_equal(sum, all);
    assert_int_equal(ask_u32(WIRE_I_REMOVE, "a", 1), 0);
    assert_int_equal(list("", true, 2, "a/1"), 0); /* what the page ended at is gone */
    assert_string_equal(listed, "a.txt b ");
    assert_true(cut);
    assert_int_equal(list("c", true, 9, "c/d"), 0);
    assert_string_equal(listed, "c/d/e ");
    assert_int_equal(list("b", true, 9, ""), ENOTDIR);
}

/* Deeper than a path is long, which only a process that walks there can make. */
static void make_deep(const char *name, int levels) {
    AUTO_FD at = dup(workspace);
    for (int i = 0; i < levels; i++) {
        assert_int_equal(mkdirat(at, name, 0755), 0);
        AUTO_FD next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        int old = at;
        at = fd_take(&next);
        close(old);
        AUTO_FD file = openat(at, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        assert_true(file >= 0);
    }
}

#define D8     "d/d/d/d/d/d/d/d/"
#define DEEP64 D8 D8 D8 D8 D8 D8 D8 "d/d/d/d/d/d/d/d"

static void deep_trees_are_listed_in_bounds_and_removed_whole(void **state) {
    (void)state;
    make_deep("d", 3000);
    assert_int_equal(list("", true, 10000, ""), 0);
    assert_false(cut);
    assert_non_null(strstr(listed, DEEP64));
    assert_null(strstr(listed, DEEP64 "/"));
    assert_int_equal(ask_open(DEEP64 "/new", O_WRONLY | O_CREAT), ENAMETOOLONG);
    assert_int_equal(ask_u32(WIRE_I_REMOVE, "d", 0), ENOTEMPTY);
    assert_int_equal(ask_u32(WIRE_I_REMOVE, "d", 1), 0);
    assert_int_equal(list("", true, 10, ""), 0);
    assert_string_equal(listed, "");
    assert_int_equal(ask_u32(WIRE_I_REMOVE, "d", 1), ENOENT);
}

static void malformed_requests_are_refused(void **state) {
    (void)state;
    static const enum wire_type all[] = {WIRE_I_OPEN,  WIRE_I_STAT,  WIRE_I_LIST,   WIRE_I_MKDIR,
                                         WIRE_I_MOVE,  WIRE_I_CHMOD, WIRE_I_REMOVE, WIRE_I_TEMP,
                                         WIRE_I_PLACE, WIRE_I_LINK,  WIRE_I_CHANGES};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        wire_begin(&question, all[i]);
        wire_put_u64(&question, UINT64_MAX);
        assert_int_equal(ask(-1), EINVAL);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make_workspace, remove_workspace)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(uploads_appear_whole_and_belong_to_the_sandbox),
        TEST(an_upload_replaces_files_and_links_only),
        TEST(only_files_of_ours_without_a_name_get_one),
        TEST(no_path_leads_out),
        TEST(a_link_that_stays_inside_is_followed_on_the_way),
        TEST(what_would_block_does_not),
        TEST(moves_replace_nothing),
        TEST(pages_go_on_where_the_last_ended),
        TEST(deep_trees_are_listed_in_bounds_and_removed_whole),
        TEST(malformed_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
