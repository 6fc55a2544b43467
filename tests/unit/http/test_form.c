/* http/form: the parts come out as they are, however the client writes their heads and however the
 * bytes are cut. */

#include "http/form.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define TYPE "multipart/form-data; boundary=cut"
#define HEAD "Content-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n"
#define FILE "--cut\r\n" HEAD

/* "[NAME|FILENAME]CONTENT" for each part. */
static bool note(void *arg, const struct form_part *p) {
    struct buf *to = arg;
    if (p->first)
        buf_addf(to, "[%s|%s]", p->name, p->filename ? p->filename : "-");
    assert_true(!p->first || p->len == 0);
    buf_add(to, p->data, p->len);
    return !memchr(p->data, '!', p->len);
}

/* A '.' behind them when the form was whole. */
static void read_form(const char *type, const char *text, size_t step, struct buf *to) {
    struct form *f = form_new(type, note, to);
    size_t len = strlen(text);
    if (!f) {
        buf_adds(to, "no form");
        return;
    }
    for (size_t at = 0; at < len; at += step)
        form_add(f, text + at, len - at < step ? len - at : step);
    buf_adds(to, form_is_whole(f) ? "." : "");
    form_free(f);
}

static void parts_come_out_as_they_are(void **state) {
    (void)state;
    static const struct {
        const char *name, *text, *want;
    } cases[] = {
        {"nothing", "", ""},
        {"an empty form", "--cut--\r\n", "."},
        {"one", FILE "x\r\n--cut--\r\n", "[file|a]x."},
        {"empty", FILE "\r\n--cut--", "[file|a]."},
        {"two", FILE "x\r\n" FILE "y\r\n--cut--\r\n", "[file|a]x[file|a]y."},
        {"two of which the first is empty", FILE "\r\n" FILE "y\r\n--cut--\r\n",
         "[file|a][file|a]y."},
        {"no head", "--cut\r\n\r\nx\r\n--cut--", "[|-]x."},
        {"not whole", FILE "x\r\n--cut-", "[file|a]x"},
        {"cut off in the head", "--cut\r\nContent-", ""},
        {"something before and after", "hello\r\n" FILE "x\r\n--cut--\r\n" FILE, "[file|a]x."},
        {"blanks behind the boundary", "--cut \t\r\n" HEAD "x\r\n--cut--", "[file|a]x."},
        {"line ends", FILE "\r\n\r\r\n\n\r\n--cut--", "[file|a]\r\n\r\r\n\n."},
        {"what begins like the boundary", FILE "\r\n--cu\r\n--cutter\r\n--cut--",
         "[file|a]\r\n--cu\r\n--cutter."},
        {"dashes", FILE "--cut--\r\n--\r\n--cut--", "[file|a]--cut--\r\n--."},
        {"no more is wanted", FILE "!\r\n" FILE "y\r\n--cut--", "[file|a]!"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t step = 1; step < 100; step++) {
            AUTO_BUF got = BUF_INIT;
            read_form(TYPE, cases[i].text, step, &got);
            assert_string_equal(got.data, cases[i].want);
        }
    }
}

static void heads_are_read_as_clients_write_them(void **state) {
    (void)state;
    static const struct {
        const char *name, *head, *want;
    } cases[] = {
        {"browsers", "Content-Disposition: form-data; name=\"file\"; filename=\"a b.txt\"",
         "file|a b.txt"},
        {"a plain field", "Content-Disposition: form-data; name=\"file\"", "file|-"},
        {"no name of the file", "Content-Disposition: form-data; name=\"f\"; filename=\"\"", "f|"},
        {"bare words", "Content-Disposition: form-data; name=file; filename=a.txt", "file|a.txt"},
        {".NET",
         "Content-Type: x/y\r\nContent-Disposition: form-data; name=file; "
         "filename=\"=?utf-8?B?5pWw?=\"; filename*=utf-8''%E6%95%B0",
         "file|\xe6\x95\xb0"},
        {"filename* first",
         "Content-Disposition: form-data; name=\"file\"; filename*=UTF-8'en'a%20b; filename=\"x\"",
         "file|a b"},
        {"another alphabet", "Content-Disposition: form-data; filename*=latin1''%E9; name=f",
         "f|-"},
        {"a bad escape", "Content-Disposition: form-data; name=f; filename*=UTF-8''%4; filename=x",
         "f|x"},
        {"a NUL", "Content-Disposition: form-data; name=f; filename*=UTF-8''a%00b; filename=x",
         "f|x"},
        {"UTF-8", "Content-Disposition: form-data; name=\"f\"; filename=\"\xe6\x95\xb0.txt\"",
         "f|\xe6\x95\xb0.txt"},
        {"escapes", "Content-Disposition: form-data; name=\"f\"; filename=\"a\\\"b\\\\c\"",
         "f|a\"b\\c"},
        {"backslashes", "Content-Disposition: form-data; name=\"f\"; filename=\"C:\\x\\y\"",
         "f|C:\\x\\y"},
        {"semicolons", "Content-Disposition: form-data; name=\"f\"; filename=\"a; name=x\"",
         "f|a; name=x"},
        {"no blanks", "content-disposition:form-data;name=\"f\";filename=\"a\"", "f|a"},
        {"many blanks", "Content-Disposition:\t form-data ; name = \"f\" ; filename = a ", "f|a"},
        {"capitals", "CONTENT-DISPOSITION: FORM-DATA; NAME=\"f\"; FILENAME=\"a\"", "f|a"},
        {"an open quote", "Content-Disposition: form-data; name=\"f", "f|-"},
        {"nothing", "Content-Disposition:", "|-"},
        {"other headers", "X: y\r\nContent-Disposition: form-data; name=f\r\nContent-Type: x",
         "f|-"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF text = BUF_INIT;
        AUTO_BUF got = BUF_INIT;
        AUTO_BUF want = BUF_INIT;
        buf_addf(&text, "--cut\r\n%s\r\n\r\nx\r\n--cut--\r\n", cases[i].head);
        buf_addf(&want, "[%s]x.", cases[i].want);
        read_form(TYPE, text.data, 7, &got);
        assert_string_equal(got.data, want.data);
    }
}

static void the_boundary_is_a_parameter(void **state) {
    (void)state;
    static const struct {
        const char *type, *want;
    } cases[] = {
        {"multipart/form-data; boundary=cut", "[file|a]x."},
        {"multipart/form-data; boundary=\"cut\"", "[file|a]x."},
        {"multipart/form-data;boundary=cut", "[file|a]x."},
        {"multipart/form-data; boundary=cut; charset=utf-8", "[file|a]x."},
        {"multipart/form-data; charset=utf-8; boundary=cut", "[file|a]x."},
        {"Multipart/Form-Data; Boundary=cut", "[file|a]x."},
        {"multipart/form-data; boundary=cu", ""},
        {"multipart/form-data; boundary=", "no form"},
        {"multipart/form-data", "no form"},
        {"multipart/mixed; boundary=cut", "no form"},
        {"application/json", "no form"},
        {NULL, "no form"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF got = BUF_INIT;
        read_form(cases[i].type, FILE "x\r\n--cut--\r\n", 1000, &got);
        assert_string_equal(got.data, cases[i].want);
    }
}

static void a_head_has_a_bound(void **state) {
    (void)state;
    AUTO_BUF text = BUF_INIT;
    buf_adds(&text, "--cut\r\nX: ");
    for (int i = 0; i < 20000; i++)
        buf_addc(&text, 'x');
    buf_adds(&text, "\r\n" HEAD "x\r\n--cut--\r\n");
    for (size_t step = 100; step < 100000; step *= 10) {
        AUTO_BUF got = BUF_INIT;
        read_form(TYPE, text.data, step, &got);
        assert_string_equal(got.data, "");
    }
}

/* Forms of one long field, byte by byte: the processor time of 50. */
static double seconds_for(const char *before, const char *behind) {
    AUTO_BUF text = BUF_INIT, got = BUF_INIT;
    buf_adds(&text, before);
    for (int i = 0; i < 16000; i++)
        buf_addc(&text, 'x');
    buf_addf(&text, "%s\r\n--cut--\r\n", behind);
    clock_t began = clock();
    for (int i = 0; i < 50; i++)
        read_form(TYPE, text.data, 1, &got);
    assert_int_equal(got.data[got.len - 1], '.');
    return (double)(clock() - began) / CLOCKS_PER_SEC;
}

static void a_head_is_looked_at_once(void **state) {
    (void)state;
    double content = seconds_for(FILE, ""), head = seconds_for("--cut\r\nX: ", "\r\n" HEAD "x");
    if (head > 20 * content)
        fail_msg("a head took %.3f s, content %.3f s", head, content);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_come_out_as_they_are),
        cmocka_unit_test(heads_are_read_as_clients_write_them),
        cmocka_unit_test(the_boundary_is_a_parameter),
        cmocka_unit_test(a_head_has_a_bound),
        cmocka_unit_test(a_head_is_looked_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
