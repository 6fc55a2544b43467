/* remote/mcp: a client's lines come out whole, however the bytes are cut; of one that is too long
 * the id is kept; a message says which era it belongs to, and what goes into its headers; paths of
 * this machine are held against the directories that are allowed. */

#include "base/fd.h"
#include "remote/mcp/host_path.h"
#include "remote/mcp/lines.h"
#include "remote/mcp/message.h"
#include "remote/mcp/options.h"

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

/* Each line in <>, the id of one that was too long in (). */
static void read_lines(const char *text, size_t len, size_t step, struct buf *to) {
    struct lines l = LINES_INIT;
    const char *line;
    size_t n;
    for (size_t at = 0; at <= len; at += step) {
        if (at < len)
            lines_add(&l, text + at, len - at < step ? len - at : step);
        if (at + step > len)
            lines_end(&l);
        for (enum line_got got; (got = lines_next(&l, &line, &n)) != LINE_NONE;) {
            buf_adds(to, got == LINE_GOT ? "<" : "(");
            buf_add(to, line, n);
            buf_adds(to, got == LINE_GOT ? ">" : ")");
        }
    }
    lines_done(&l);
}

static void lines_come_out_whole(void **state) {
    (void)state;
    static const struct {
        const char *name, *text, *want;
    } cases[] = {
        {"nothing", "", ""},
        {"one", "{}\n", "<{}>"},
        {"two", "{\"a\":1}\n{\"b\":2}\n", "<{\"a\":1}><{\"b\":2}>"},
        {"the last has no newline", "{}\n[1]", "<{}><[1]>"},
        {"carriage returns", "{}\r\n[]\r\n", "<{}><[]>"},
        {"empty lines say nothing", "\n\n{}\n \n\r\n", "<{}>"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t step = 1; step < 9; step++) {
            AUTO_BUF got = BUF_INIT;
            read_lines(cases[i].text, strlen(cases[i].text), step, &got);
            if (strcmp(got.data, cases[i].want) != 0)
                fail_msg("%s by %zu: got %s, want %s", cases[i].name, step, got.data,
                         cases[i].want);
        }
    }
}

static void the_id_of_a_long_line_is_kept(void **state) {
    (void)state;
    static const struct {
        const char *name, *front, *back, *want;
    } cases[] = {
        {"in front", "{\"id\":7,\"x\":\"", "\"}", "(7)"},
        {"behind", "{\"x\":\"", "\",\"id\": \"a\\\"b\" }", "( \"a\\\"b\" )"},
        {"of the message alone", "{\"params\":{\"id\":1,\"x\":\"", "\"},\"id\":2}", "(2)"},
        {"not a value", "{\"x\":\"id\",\"y\":\"", "\"}", "(null)"},
        {"not within a text", "{\"x\":\"\\\"id\\\":3,", "\"}", "(null)"},
        {"none", "{\"x\":\"", "\"}", "(null)"},
        {"no JSON", "}}]]\"id\":", "", "(null)"},
        {"not that of a list", "[\"id\",1,\"", "\"]", "(null)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF text = BUF_INIT;
        AUTO_BUF got = BUF_INIT;
        AUTO_BUF want = BUF_INIT;
        buf_adds(&text, cases[i].front);
        memset(buf_reserve(&text, LINE_MAX_BYTES + 1), 'y', LINE_MAX_BYTES + 1);
        buf_commit(&text, LINE_MAX_BYTES + 1);
        buf_addf(&text, "%s\n{\"next\":1}\n", cases[i].back);
        buf_addf(&want, "%s<{\"next\":1}>", cases[i].want);
        read_lines(text.data, text.len, 65536, &got);
        if (strcmp(got.data, want.data) != 0)
            fail_msg("%s: got %.200s, want %s", cases[i].name, got.data, want.data);
    }
}

#define MODERN "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}"

static void messages_say_their_era_and_name(void **state) {
    (void)state;
    static const struct {
        const char *text, *method, *name, *version;
        bool has_id;
    } cases[] = {
        {"{\"id\":1,\"method\":\"ping\"}", "ping", "", "", true},
        {"{\"method\":\"notifications/initialized\"}", "notifications/initialized", "", "", false},
        {"{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"f\"}}", "tools/call", "f", "",
         true},
        {"{\"id\":1,\"method\":\"resources/read\",\"params\":{\"uri\":\"u\"," MODERN "}}",
         "resources/read", "u", "2026-07-28", true},
        {"{\"id\":1,\"method\":\"tools/list\",\"params\":{\"name\":\"f\"," MODERN "}}",
         "tools/list", "", "2026-07-28", true},
        {"{\"id\":1,\"result\":{}}", "", "", "", false},
        {"{\"id\":{},\"method\":\"x\"}", "x", "", "", false},
        {"{\"id\":null,\"method\":5,\"params\":[]}", "", "", "", false},
        {"[{\"id\":1,\"method\":\"ping\"}]", "", "", "", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_MESSAGE m = {0};
        struct err e;
        assert_int_equal(message_read(cases[i].text, strlen(cases[i].text), &m, &e), 0);
        assert_string_equal(m.method, cases[i].method);
        assert_string_equal(m.name ? m.name : "", cases[i].name);
        assert_string_equal(m.version, cases[i].version);
        assert_int_equal(m.is_modern, *cases[i].version != '\0');
        assert_int_equal(m.id != NULL, cases[i].has_id);
    }
}

static void headers_take_any_text(void **state) {
    (void)state;
    static const struct {
        const char *value, *want;
    } cases[] = {
        {"run_python", "N: run_python"},    {"a b", "N: a b"},
        {" a", "N: =?base64?IGE=?="},       {"a\r\nX: y", "N: =?base64?YQ0KWDogeQ==?="},
        {"\xc3\xa9", "N: =?base64?w6k=?="}, {"=?base64?x", "N: =?base64?PT9iYXNlNjQ/eA==?="},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF got = BUF_INIT;
        message_header(&got, "N", cases[i].value);
        assert_string_equal(got.data, cases[i].want);
    }
}

/* ---- files of this machine ---- */

struct place {
    char dir[64];
    struct host_dirs allowed;
};

static int place_set_up(void **state) {
    static struct place p;
    struct mcp_words named = {0};
    char inside[80];
    struct err e;
    snprintf(p.dir, sizeof p.dir, "/tmp/test_mcp.XXXXXX");
    if (!mkdtemp(p.dir))
        return -1;
    snprintf(inside, sizeof inside, "%s/in", p.dir);
    const char *items[] = {inside};
    named.items = items;
    named.n = 1;
    char script[400];
    snprintf(script, sizeof script,
             "cd %s && mkdir in out in/sub && echo a >in/a && echo s >out/s && mkfifo in/fifo && "
             "ln -s ../out/s in/link && ln -s sub in/near && ln -s ../out/none in/nowhere && "
             "ln -s ../out in/away",
             p.dir);
    *state = &p;
    return system(script) == 0 && host_dirs_open(&p.allowed, &named, &e) == 0 ? 0 : -1;
}

static int place_tear_down(void **state) {
    struct place *p = *state;
    char script[100];
    snprintf(script, sizeof script, "rm -rf %s", p->dir);
    host_dirs_done(&p->allowed);
    return system(script);
}

static void only_files_below_are_read(void **state) {
    struct place *p = *state;
    static const struct {
        const char *path, *error;
    } cases[] = {
        {"in/a", NULL},
        {"in/sub/../a", NULL},
        {"in/none", "File not found: "},
        {"in/sub/none/none", "File not found: "},
        {"in/sub", "Not a file: "},
        {"in/fifo", "Not a file: "},
        {"in/link", "is not within allowed directories for upload"},
        {"in/../out/s", "is not within allowed directories for upload"},
        {"in/none/../../out/s", "is not within allowed directories for upload"},
        {"in/nowhere", "is not within allowed directories for upload"},
        {"in/away/s", "is not within allowed directories for upload"},
        {"inside", "is not within allowed directories for upload"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[200];
        struct err e = {0};
        AUTO_FD fd = -1;
        snprintf(path, sizeof path, "%s/%s", p->dir, cases[i].path);
        int rc = host_path_read(&p->allowed, path, &fd, &e);
        if ((rc == 0) != !cases[i].error || (rc < 0 && !strstr(e.text, cases[i].error)))
            fail_msg("%s: %d %s", cases[i].path, rc, e.text);
    }
}

static void only_files_below_are_written(void **state) {
    struct place *p = *state;
    static const struct {
        const char *path, *error;
    } cases[] = {
        {"in/new", NULL},
        {"in/a", NULL},
        {"in/x/y/z", NULL},
        {"in/near/n", NULL},
        {"in/sub", "Not a file: "},
        {"in/away/n", "is not within allowed directories for download"},
        {"in/nowhere", "is not within allowed directories for download"},
        {"out/n", "is not within allowed directories for download"},
        {"in/x/../../out/n", "is not within allowed directories for download"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[200], text[16] = "";
        struct err e = {0};
        struct host_write w = {.dir = -1};
        AUTO_FD fd = -1;
        snprintf(path, sizeof path, "%s/%s", p->dir, cases[i].path);
        int rc = host_path_write(&p->allowed, path, &w, &fd, &e);
        if ((rc == 0) != !cases[i].error || (rc < 0 && !strstr(e.text, cases[i].error)))
            fail_msg("%s: %d %s", cases[i].path, rc, e.text);
        if (rc < 0)
            continue;
        assert_int_equal(fd_write_all(fd, "new", 3, &e), 0);
        assert_int_equal(host_path_commit(&w, &e), 0);
        host_write_done(&w);
        assert_int_equal(file_read_at(-1, path, text, sizeof text, &e), 0);
        assert_string_equal(text, "new");
    }
}

static void what_is_not_committed_goes(void **state) {
    struct place *p = *state;
    char path[200], text[16];
    struct err e = {0};
    struct host_write w = {.dir = -1};
    AUTO_FD fd = -1;
    snprintf(path, sizeof path, "%s/in/half", p->dir);
    assert_int_equal(host_path_write(&p->allowed, path, &w, &fd, &e), 0);
    snprintf(path, sizeof path, "%s/in/%s", p->dir, w.part);
    assert_int_equal(file_read_at(-1, path, text, sizeof text, &e), 0);
    host_write_done(&w);
    assert_int_equal(file_read_at(-1, path, text, sizeof text, &e), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_out_whole),
        cmocka_unit_test(the_id_of_a_long_line_is_kept),
        cmocka_unit_test(messages_say_their_era_and_name),
        cmocka_unit_test(headers_take_any_text),
        cmocka_unit_test_setup_teardown(only_files_below_are_read, place_set_up, place_tear_down),
        cmocka_unit_test_setup_teardown(only_files_below_are_written, place_set_up,
                                        place_tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_committed_goes, place_set_up, place_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
