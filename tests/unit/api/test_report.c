/* api/mcp/report: what an execution said, as text and images for a model. */

#include "api/mcp/report.h"

#include "loop/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct loop *loop;
static struct records *records;

static int open_records(void **state) {
    struct err e;
    (void)state;
    records = loop_new(&loop, &e) == 0 ? records_new(loop, 64 << 20, 1000000) : NULL;
    return records ? 0 : -1;
}

#define PNG "iVBORw0KGgoAAAA"
struct said {
    const char *type, *json;
};

/* Tells the report and the record, and ends with this status. */
static struct record *say(struct report *r, const struct said *said, const char *status) {
    static unsigned n;
    char id[20];
    AUTO_BUF end = BUF_INIT;
    uint64_t number;
    snprintf(id, sizeof id, "exe_%u", n++);
    struct record *rec = record_new(records, id, "a");
    for (; said->type; said++) {
        number = record_event(rec, said->type, said->json, strlen(said->json));
        report_event(r, number, said->type, said->json, strlen(said->json));
    }
    buf_addf(&end, "{\"files\":[{\"path\":\"a.csv\"},{\"path\":\"b\"}],\"status\":\"%s\"}", status);
    number = record_event(rec, "end", end.data, end.len);
    report_event(r, number, "end", end.data, end.len);
    record_end(rec, "{}");
    return rec;
}

static const struct report_words words = {
    .text = REPORT_TEXT, .error = REPORT_ERROR, .late = "[late]"};

static const struct {
    const char *behaviour;
    struct said said[8];
    const char *status, *want;
    unsigned images;
    bool is_error;
} told_cases[] = {
    {"nothing", {{0}}, "ok", "", 0, false},
    {"streams as they came",
     {{"stdout", "{\"data\":\"a\\n\"}"},
      {"stderr", "{\"data\":\"b\\n\"}"},
      {"stdout", "{\"data\":\"c\\n\"}"}},
     "ok",
     "a\nb\nc",
     0,
     false},
    {"a value begins a line",
     {{"stdout", "{\"data\":\"a\"}"},
      {"result", "{\"data\":{\"text/plain\":\"42\"},\"metadata\":{},\"execution_count\":1}"}},
     "ok",
     "a\n42",
     0,
     false},
    {"a figure is an image and no text",
     {{"display", "{\"data\":{\"text/plain\":\"<Figure size 1x1>\",\"image/png\":\"" PNG
                  "\\n\"},\"metadata\":{},\"display_id\":null,\"update\":false}"}},
     "ok",
     "",
     1,
     false},
    {"a text beside an image that says something",
     {{"result", "{\"data\":{\"image/png\":\"" PNG "\",\"text/plain\":\"Chart(3)\"},"
                 "\"metadata\":{},\"execution_count\":1}"}},
     "ok",
     "Chart(3)",
     1,
     false},
    {"what is no image is none",
     {{"display", "{\"data\":{\"image/png\":\"bm8=\",\"text/plain\":\"<X>\"},\"metadata\":{},"
                  "\"display_id\":null,\"update\":false}"}},
     "ok",
     "<X>",
     0,
     false},
    {"a table's text, not its HTML",
     {{"result", "{\"data\":{\"text/html\":\"<table>\",\"text/plain\":\"   a\\n0  1\"},"
                 "\"metadata\":{},\"execution_count\":1}"}},
     "ok",
     "   a\n0  1",
     0,
     false},
    {"HTML that has no text",
     {{"display", "{\"data\":{\"text/html\":\"<b>x</b>\",\"text/plain\":\"<HTML object>\"},"
                  "\"metadata\":{},\"display_id\":null,\"update\":false}"}},
     "ok",
     "<b>x</b>",
     0,
     false},
    {"an update in its place",
     {{"display", "{\"data\":{\"text/plain\":\"1\"},\"metadata\":{},\"display_id\":\"d\","
                  "\"update\":false}"},
      {"stdout", "{\"data\":\"x\\n\"}"},
      {"display", "{\"data\":{\"text/plain\":\"2\"},\"metadata\":{},\"display_id\":\"d\","
                  "\"update\":true}"}},
     "ok",
     "2\nx",
     0,
     false},
    {"an image that is updated",
     {{"display", "{\"data\":{\"image/png\":\"" PNG "1\"},\"metadata\":{},\"display_id\":\"d\","
                  "\"update\":false}"},
      {"display", "{\"data\":{\"image/png\":\"" PNG "2\"},\"metadata\":{},\"display_id\":\"d\","
                  "\"update\":true}"}},
     "ok",
     "",
     1,
     false},
    {"clear_output()",
     {{"stdout", "{\"data\":\"a\"}"},
      {"clear", "{\"wait\":false}"},
      {"stdout", "{\"data\":\"b\"}"}},
     "ok",
     "b",
     0,
     false},
    {"clear_output(wait=True), when something comes",
     {{"stdout", "{\"data\":\"a\"}"},
      {"clear", "{\"wait\":true}"},
      {"stdout", "{\"data\":\"b\"}"},
      {"clear", "{\"wait\":true}"}},
     "ok",
     "b",
     0,
     false},
    {"an exception after what was printed",
     {{"stdout", "{\"data\":\"a\\n\"}"},
      {"error", "{\"name\":\"E\",\"value\":\"v\",\"traceback\":[\"one\",\"E: v\"]}"}},
     "error",
     "a\none\nE: v",
     0,
     true},
    {"a timeout", {{"stdout", "{\"data\":\"a\\n\"}"}}, "timeout", "a\n[late]", 0, true},
    {"what did not run",
     {{"failed", "{\"error\":{\"code\":\"x\",\"message\":\"no\",\"remediation\":\"wait\"}}"}},
     "error",
     "no: wait",
     0,
     true},
};

static void it_is_told_in_order(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof told_cases / sizeof *told_cases; i++) {
        struct report r = REPORT_INIT;
        AUTO_BUF text = BUF_INIT;
        struct record *rec = say(&r, told_cases[i].said, told_cases[i].status);
        struct report_told told = report_text(&r, rec, &words, &text);
        if (strcmp(text.data, told_cases[i].want) != 0 || r.nimages != told_cases[i].images ||
            told.is_error != told_cases[i].is_error || told.cut)
            fail_msg("%s: \"%s\", %u images", told_cases[i].behaviour, text.data, r.nimages);
        report_done(&r);
    }
}

static void count_file(void *arg, const char *path, size_t len) {
    buf_addf(arg, "%.*s;", (int)len, path);
}

static void images_beyond_the_bound_are_links(void **state) {
    (void)state;
    static const char json[] = "{\"data\":{\"image/png\":\"" PNG "\"},\"metadata\":{},"
                               "\"display_id\":null,\"update\":false}";
    struct said said[REPORT_IMAGES + REPORT_LINKS + 3] = {{0}};
    for (size_t i = 0; i + 1 < sizeof said / sizeof *said; i++)
        said[i] = (struct said){"display", json};
    struct report r = REPORT_INIT;
    AUTO_BUF text = BUF_INIT, image = BUF_INIT, files = BUF_INIT;
    struct record *rec = say(&r, said, "ok");
    report_text(&r, rec, &words, &text);
    assert_int_equal(r.nimages, REPORT_IMAGES);
    assert_int_equal(r.nlinks, REPORT_LINKS);
    assert_int_equal(r.lost, 2);
    assert_non_null(strstr(text.data, "2 images more"));
    assert_string_equal(report_image_of(rec, r.links[0].number, &image), "image/png");
    assert_string_equal(image.data, PNG);
    assert_null(report_image_of(rec, 1000, &image));
    assert_int_equal(report_files(&r, 1, count_file, &files), 2);
    assert_string_equal(files.data, "a.csv;");
    report_done(&r);
}

static void long_text_is_cut_and_can_be_read_whole(void **state) {
    (void)state;
    struct said said[200] = {{0}};
    AUTO_BUF line = BUF_INIT, text = BUF_INIT, all = BUF_INIT;
    buf_adds(&line, "{\"data\":\"");
    for (unsigned i = 0; i < 1000; i++)
        buf_adds(&line, "0123456789");
    buf_adds(&line, "\\n\"}");
    for (size_t i = 0; i + 1 < sizeof said / sizeof *said; i++)
        said[i] = (struct said){"stdout", line.data};
    struct report r = REPORT_INIT;
    struct record *rec = say(&r, said, "ok");
    assert_true(report_text(&r, rec, &words, &text).cut);
    assert_true(text.len <= REPORT_TEXT);
    assert_non_null(strstr(text.data, "cloche://execution/exe_"));
    assert_true(report_output(rec, 4 << 20, &all));
    assert_int_equal(all.len, 199 * 10002);
    assert_false(report_output(rec, 1000, &all));
    report_done(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_told_in_order),
        cmocka_unit_test(images_beyond_the_bound_are_links),
        cmocka_unit_test(long_text_is_cut_and_can_be_read_whole),
    };
    return cmocka_run_group_tests(tests, open_records, NULL);
}
