/* mcp/sse: events, in whatever pieces they come. */

#include "mcp/sse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void note(void *arg, const char *type, const char *id, const struct buf *data) {
    buf_addf(arg, "%s|%s|%s;", type, id, data->data);
}

static bool read_in(const char *text, size_t step, size_t most, struct buf *to,
                    uint64_t *ret_retry) {
    struct sse_reader r = SSE_READER_INIT;
    size_t len = strlen(text);
    bool good = true;
    r.arg = to;
    r.on_event = note;
    r.most = most;
    for (size_t at = 0; at < len && good; at += step)
        good = sse_read(&r, text + at, len - at < step ? len - at : step);
    *ret_retry = r.retry_ms;
    sse_reader_done(&r);
    return good;
}

static const struct {
    const char *text, *events;
    uint64_t retry;
} cases[] = {
    {"data: a\n\n", "message||a;", 0},
    {"data: a\r\n\r\ndata: b\r\rdata: c\n\n", "message||a;message||b;message||c;", 0},
    {"data:a\ndata: b\n\n", "message||a\nb;", 0},
    {"event: x\nid: 7\ndata\n\n", "x|7|;", 0},
    {"id: 1\ndata: a\n\ndata: b\n\n", "message|1|a;message|1|b;", 0},
    {": comment\n\nevent: x\n\ndata: a\n\n", "message||a;", 0},
    {"\xef\xbb\xbf"
     "data: a\n\n",
     "message||a;", 0},
    {"retry: 100\ndata:\n\n", "message||;", 100},
    {"retry: 1x\nretry:\n\n", "", 0},
    {"retry: 99999999999999999999\n\n", "", 3600000},
    {"data: unfinished\n", "", 0},
    {"unknown: x\ndata: a\n\n", "message||a;", 0},
};

static void events_are_the_same_in_any_pieces(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t step = 1; step < 20; step++) {
            AUTO_BUF events = BUF_INIT;
            uint64_t retry;
            assert_true(read_in(cases[i].text, step, 1000, &events, &retry));
            assert_string_equal(events.data, cases[i].events);
            assert_int_equal(retry, cases[i].retry);
        }
    }
}

static void an_event_without_end_is_refused(void **state) {
    (void)state;
    AUTO_BUF line = BUF_INIT;
    AUTO_BUF lines = BUF_INIT;
    AUTO_BUF events = BUF_INIT;
    uint64_t retry;
    for (unsigned i = 0; i < 2000; i++) {
        buf_addc(&line, 'x');
        buf_adds(&lines, "data: y\n");
    }
    assert_false(read_in(line.data, 64, 1000, &events, &retry));
    assert_false(read_in(lines.data, 64, 1000, &events, &retry));
    assert_string_equal(events.data, "");
}

static void what_is_written_is_read(void **state) {
    (void)state;
    AUTO_BUF text = BUF_INIT;
    AUTO_BUF events = BUF_INIT;
    uint64_t retry;
    sse_write(&text, "s:1", "{}", 2);
    sse_write(&text, NULL, "[1]", 3);
    assert_true(read_in(text.data, 3, 1000, &events, &retry));
    assert_string_equal(events.data, "message|s:1|{};message|s:1|[1];");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_the_same_in_any_pieces),
        cmocka_unit_test(an_event_without_end_is_refused),
        cmocka_unit_test(what_is_written_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
