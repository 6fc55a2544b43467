/* engine/core/files: questions about a sandbox's files, asked of the real code of init over a
 * socket, and answers that no init of ours gives. */

#include "base/fd.h"
#include "engine/core/engine.h"
#include "engine/core/files.h"
#include "engine/core/sandbox.h"
#include "init/files.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SHARE_NS UINT64_C(60000000000)

static char top[64];
static int workspace, init_end;
static struct engine g;
static struct cgroup_fds slots[1];
static struct sandbox *sandbox;
static struct guest_kind kind;
static struct guest guest = {.kind = &kind};

/* What the last answer was. */
static struct {
    unsigned answers;
    int errnum;
    bool gone, cut, replaced;
    char text[300], path[300];
    enum entry_type type;
    int fd;
    char names[300]; /* of the entries, or changes, with spaces between */
} got;

static void add_name(const char *name) {
    size_t len = strlen(got.names);
    snprintf(got.names + len, sizeof got.names - len, "%s%s", len ? " " : "", name);
}

static void on_answer(void *arg, struct file_answer *a) {
    struct entry f;
    (void)arg;
    fd_close(&got.fd);
    got.answers++;
    got.errnum = a->why ? a->why->code : 0;
    snprintf(got.text, sizeof got.text, "%.299s", a->why ? a->why->text : "");
    got.gone = a->gone;
    got.cut = a->page.cut || a->cut;
    got.replaced = a->replaced;
    got.fd = fd_take(&a->fd);
    got.type = a->entry.type;
    snprintf(got.path, sizeof got.path, "%.299s", a->entry.path ? a->entry.path : "");
    got.names[0] = '\0';
    for (unsigned i = 0; i < a->changes.n; i++)
        add_name(a->changes.items[i].path);
    for (int r; (r = file_page_next(&a->page, &f)) != 0;) {
        add_name(r < 0 ? "malformed" : f.path);
        if (r < 0)
            break;
    }
}

static struct file_ask who = {.fn = on_answer};

/* Init answers all that has been asked of it, and the server hears it. */
static void let_init_answer(void) {
    static struct wire_in in;
    static struct wire_out o;
    struct err e;
    while (wire_recv(init_end, &in, &e) == WIRE_GOT) {
        AUTO_FD fd = -1;
        if (in.type == WIRE_I_ECHO) {
            struct i_echo m;
            assert_int_equal(i_echo_get(&in, &m, &e), 0);
            i_reply_echo_put(&o, &(struct i_reply_echo){.value = m.value});
        } else {
            assert_true(files_serve(&in, workspace, getuid(), &o, &fd));
        }
        wire_in_done(&in);
        assert_int_equal(wire_send(init_end, &o, &e), WIRE_SENT);
    }
    chan_pump(&sandbox->req);
}

/* One question and its answer: the errno. */
static int ask(const struct file_question *q) {
    unsigned before = got.answers;
    assert_true(files_ask(sandbox, q, &who));
    assert_true(files_is_asked(&who));
    let_init_answer();
    assert_int_equal(got.answers, before + 1);
    assert_false(files_is_asked(&who));
    return got.errnum;
}

/* As the warden gives one that an earlier server had. */
static void adopt(void) {
    static struct wire_in in;
    struct err e;
    int ends[SANDBOX_FDS_][2];
    struct w_made m = {.sandbox = 7, .version = WIRE_VERSION};
    memset(&in, 0, sizeof in);
    for (int i = 0; i < SANDBOX_FDS_; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends[i]), 0);
        if (i == SANDBOX_WORKSPACE) {
            close(ends[i][0]);
            ends[i][0] = dup(workspace);
        }
        m.fds[i] = in.fds[in.nfds++] = ends[i][0];
        if (i == SANDBOX_REQ)
            init_end = ends[i][1];
        else if (i != SANDBOX_CTL)
            close(ends[i][1]);
    }
    assert_int_equal(fd_set_nonblock(init_end, &e), 0);
    sandbox = sandbox_adopt(&g, &m, &in, &e);
    assert_non_null(sandbox);
    sandbox->guest = &guest;
    let_init_answer();
}

static int set_up(void **state) {
    int ends[2];
    struct err e;
    (void)state;
    snprintf(top, sizeof top, "/dev/shm/cloche-test-XXXXXX");
    if (!mkdtemp(top) || loop_new(&g.loop, &e) < 0 || wire_pair(ends, &e) < 0)
        return -1;
    workspace = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g.config.nprofiles = 1;
    g.config.max_sandboxes = 1;
    g.cgroups = slots;
    cgroup_fds_init(slots);
    loop_share_init(&g.listing, g.loop, SHARE_NS);
    g.warden = (struct chan){.fd = -1};
    if (chan_init(&g.warden, g.loop, &ends[0], &e) < 0)
        return -1;
    close(ends[1]);
    got.fd = -1;
    adopt();
    return workspace < 0 ? -1 : 0;
}

static int tear_down(void **state) {
    char command[100];
    (void)state;
    sandbox_end(sandbox);
    free(sandbox);
    g.sandboxes = NULL;
    chan_done(&g.warden);
    loop_free(g.loop);
    fd_close(&workspace);
    fd_close(&init_end);
    fd_close(&got.fd);
    snprintf(command, sizeof command, "rm -rf %s", top);
    return system(command); /* NOLINT: the name is ours */
}

/* ---- with the init that there is ---- */

static void make(const char *path, const char *text) {
    struct err e;
    assert_int_equal(ask(&(struct file_question){.op = FILE_CREATE, .path = path, .mode = 0600}),
                     0);
    assert_int_equal(fd_write_all(got.fd, text, strlen(text), &e), 0);
}

static void a_file_is_made_and_read(void **state) {
    char text[8] = "";
    (void)state;
    make("a/b.txt", "hello");
    assert_int_equal(ask(&(struct file_question){.op = FILE_READ, .path = "a/b.txt"}), 0);
    assert_int_equal(read(got.fd, text, sizeof text), 5);
    assert_string_equal(text, "hello");
}

static void an_error_has_its_errno_and_the_path(void **state) {
    (void)state;
    assert_int_equal(ask(&(struct file_question){.op = FILE_READ, .path = "none"}), ENOENT);
    assert_string_equal(got.text, "none: No such file or directory");
    assert_int_equal(got.fd, -1);
}

static void stat_tells_what_it_is(void **state) {
    (void)state;
    make("a/b.txt", "");
    assert_int_equal(ask(&(struct file_question){.op = FILE_STAT, .path = "a"}), 0);
    assert_int_equal(got.type, ENTRY_DIRECTORY);
    assert_int_equal(ask(&(struct file_question){.op = FILE_STAT}), 0);
    assert_string_equal(got.path, "");
}

static void a_list_comes_in_pages(void **state) {
    struct file_question q = {.op = FILE_LIST, .path = "", .most = 2};
    (void)state;
    make("a", "");
    make("b", "");
    make("c", "");
    assert_int_equal(ask(&q), 0);
    assert_string_equal(got.names, "a b");
    assert_true(got.cut);
    q.after = "b";
    assert_int_equal(ask(&q), 0);
    assert_string_equal(got.names, "c");
    assert_false(got.cut);
}

static void a_file_without_a_name_gets_one(void **state) {
    (void)state;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(ask(&(struct file_question){.op = FILE_TEMP}), 0);
        const struct file_piece piece = {"abc", 3, 0};
        struct err e;
        assert_int_equal(files_write(sandbox, got.fd, &piece, &e), 0);
        AUTO_FD fd = fd_take(&got.fd);
        assert_int_equal(ask(&(struct file_question){.op = FILE_PLACE,
                                                     .path = "up/load",
                                                     .mode = 0640,
                                                     .mtime_ns = 5000000000u,
                                                     .fd = fd}),
                         0);
        assert_int_equal(got.replaced, again);
    }
    struct stat st;
    assert_int_equal(fstatat(workspace, "up/load", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(st.st_mtim.tv_sec, 5);
    assert_int_equal(st.st_size, 3);
}

static void names_change(void **state) {
    struct stat st;
    (void)state;
    assert_int_equal(ask(&(struct file_question){.op = FILE_MKDIR, .path = "d/e", .mode = 0700}),
                     0);
    assert_int_equal(ask(&(struct file_question){.op = FILE_MOVE, .path = "d/e", .to = "f"}), 0);
    assert_int_equal(ask(&(struct file_question){.op = FILE_CHMOD, .path = "f", .mode = 0711}), 0);
    assert_int_equal(ask(&(struct file_question){.op = FILE_LINK, .path = "l", .to = "f"}), 0);
    assert_int_equal(fstatat(workspace, "f", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0711);
    assert_int_equal(fstatat(workspace, "l", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISLNK(st.st_mode));
    make("f/g", "");
    assert_int_equal(ask(&(struct file_question){.op = FILE_REMOVE, .path = "f"}), ENOTEMPTY);
    assert_int_equal(
        ask(&(struct file_question){.op = FILE_REMOVE, .path = "f", .recursive = true}), 0);
    assert_int_equal(fstatat(workspace, "f", &st, 0), -1);
}

static void changes_are_told(void **state) {
    (void)state;
    make("one", "1");
    make("sub/two", "22");
    assert_int_equal(ask(&(struct file_question){.op = FILE_CHANGES, .most = 10, .depth = 8}), 0);
    assert_true(strstr(got.names, "one") && strstr(got.names, "sub/two"));
    assert_false(got.cut);
}

/* ---- whoever asks leaves, and sandboxes end ---- */

static void who_leaves_hears_nothing(void **state) {
    (void)state;
    make("a", "");
    unsigned before = got.answers;
    assert_true(files_ask(sandbox, &(struct file_question){.op = FILE_READ, .path = "a"}, &who));
    files_unask(&who);
    files_unask(&who);
    assert_false(files_is_asked(&who));
    let_init_answer();
    assert_int_equal(got.answers, before);
    assert_int_equal(ask(&(struct file_question){.op = FILE_READ, .path = "a"}), 0);
}

static void on_turns(struct timer *t) {
    (void)t;
    if (files_is_asked(&who))
        loop_timer_in_ms(g.loop, t, 1);
    else
        loop_stop(g.loop);
}

static void a_list_waits_for_a_turn_with_time_for_it(void **state) {
    const struct file_question list = {.op = FILE_LIST, .path = "", .most = 10};
    struct timer turns = {.fn = on_turns};
    struct err e;
    (void)state;
    make("a", "");
    unsigned before = got.answers;
    for (int i = 0; i < 2; i++) {
        loop_share_charge(&g.listing, 2 * SHARE_NS);
        assert_true(files_ask(sandbox, &list, &who));
        let_init_answer();
        assert_true(files_is_asked(&who));
        assert_int_equal(sandbox->nasked, 0);
        if (i == 0)
            files_unask(&who);
    }
    assert_int_equal(got.answers, before);
    chan_done(&g.warden); /* nobody is at its other end */
    loop_timer_in_ms(g.loop, &turns, 0);
    assert_int_equal(loop_run(g.loop, &e), 0);
    assert_int_equal(got.answers, before + 1);
    assert_string_equal(got.names, "a");
}

static void the_end_of_a_sandbox_is_an_answer(void **state) {
    (void)state;
    assert_true(files_ask(sandbox, &(struct file_question){.op = FILE_TEMP}, &who));
    sandbox_end(sandbox);
    assert_true(got.gone);
    assert_false(files_is_asked(&who));
    assert_false(files_ask(sandbox, &(struct file_question){.op = FILE_TEMP}, &who));
    assert_false(files_ask(NULL, &(struct file_question){.op = FILE_TEMP}, &who));
    assert_int_equal(files_room(NULL), 0);
}

static void a_question_that_does_not_fit_is_not_waited_for(void **state) {
    (void)state;
    static char path[WIRE_MAX + 1];
    memset(path, 'a', sizeof path - 1);
    assert_false(files_ask(sandbox, &(struct file_question){.op = FILE_STAT, .path = path}, &who));
    assert_int_equal(ask(&(struct file_question){.op = FILE_STAT}), 0);
}

static void room_is_left_for_signals(void **state) {
    static struct file_ask many[SANDBOX_MAX_ASKED];
    unsigned n = 0;
    (void)state;
    for (; n < SANDBOX_MAX_ASKED; n++) {
        many[n] = (struct file_ask){.fn = on_answer};
        if (!files_ask(sandbox, &(struct file_question){.op = FILE_STAT}, &many[n]))
            break;
    }
    assert_int_equal(n, SANDBOX_MOST_ASKED);
    unsigned before = got.answers;
    for (int i = 0; i < 4; i++) /* a channel hears so many at once, and no more */
        let_init_answer();
    assert_int_equal(got.answers, before + n);
}

/* ---- answers that make no sense ---- */

static struct wire_out nonsense;

static int answer_with_nonsense(enum file_op op) {
    static struct wire_in in;
    struct err e;
    const struct file_question q = {.op = op, .path = "x", .most = 10, .fd = workspace};
    assert_true(files_ask(sandbox, &q, &who));
    assert_int_equal(wire_recv(init_end, &in, &e), WIRE_GOT);
    wire_in_done(&in);
    assert_int_equal(wire_send(init_end, &nonsense, &e), WIRE_SENT);
    chan_pump(&sandbox->req);
    assert_false(files_is_asked(&who));
    return got.errnum;
}

static void an_answer_without_what_was_asked_for_is_refused(void **state) {
    static const enum file_op ops[] = {FILE_READ, FILE_CREATE, FILE_TEMP,
                                       FILE_STAT, FILE_LIST,   FILE_CHANGES};
    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        wire_begin(&nonsense, WIRE_I_REPLY);
        assert_int_equal(answer_with_nonsense(ops[i]), EPROTO);
    }
    i_error_put(&nonsense, &(struct i_error){.why = "no errno"});
    assert_int_equal(answer_with_nonsense(FILE_MKDIR), EPROTO);
}

static void a_list_that_is_cut_off_is_malformed(void **state) {
    struct err e;
    AUTO_FD fd = -1;
    AUTO_BUF records = BUF_INIT;
    (void)state;
    entry_put(&records, &(struct entry){.path = "a", .target = ""});
    assert_int_equal(memfd_of("list", records.data, records.len - 1, &fd, &e), 0);
    i_reply_list_put(&nonsense, &(struct i_reply_list){.count = 1, .records = fd});
    assert_int_equal(answer_with_nonsense(FILE_LIST), EPROTO);
    assert_int_equal(answer_with_nonsense(FILE_CHANGES), EPROTO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_made_and_read),
        TEST(an_error_has_its_errno_and_the_path),
        TEST(stat_tells_what_it_is),
        TEST(a_list_comes_in_pages),
        TEST(a_file_without_a_name_gets_one),
        TEST(names_change),
        TEST(changes_are_told),
        TEST(who_leaves_hears_nothing),
        TEST(a_list_waits_for_a_turn_with_time_for_it),
        TEST(the_end_of_a_sandbox_is_an_answer),
        TEST(a_question_that_does_not_fit_is_not_waited_for),
        TEST(room_is_left_for_signals),
        TEST(an_answer_without_what_was_asked_for_is_refused),
        TEST(a_list_that_is_cut_off_is_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
