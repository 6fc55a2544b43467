/* remote/sse: events come out whole and in order, however the bytes are cut. */

#include "remote/net/sse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* All events as "name=data;", fed `step` bytes at a time. */
static void read_all(const char *text, size_t step, struct buf *to) {
    struct sse s = SSE_INIT;
    struct err e;
    size_t len = strlen(text);
    for (size_t at = 0; at < len; at += step) {
        sse_add(&s, text + at, len - at < step ? len - at : step);
        int rc;
        while ((rc = sse_next(&s, &e)) == 1)
            buf_addf(to, "%s=%s;", s.event, s.body.data);
        assert_int_equal(rc, 0);
    }
    sse_done(&s);
}

static void events_come_out_whole(void **state) {
    (void)state;
    static const struct {
        const char *name, *text, *want;
    } cases[] = {
        {"nothing", "", ""},
        {"one", "event: a\ndata: x\n\n", "a=x;"},
        {"two", "event: a\ndata: x\n\nevent: b\ndata: y\n\n", "a=x;b=y;"},
        {"not whole yet", "event: a\ndata: x\n", ""},
        {"no name", "data: x\n\n", "=x;"},
        {"the name does not stay", "event: a\ndata: x\n\ndata: y\n\n", "a=x;=y;"},
        {"no data is no event", "event: a\n\ndata: y\n\n", "=y;"},
        {"comments and other fields", ": alive\n\nid: 4\nretry: 1\nevent: a\ndata: x\n\n", "a=x;"},
        {"several lines of data", "data: x\ndata: y\n\n", "=x\ny;"},
        {"carriage returns", "event: a\r\ndata: x\r\n\r\n", "a=x;"},
        {"no blank behind the colon", "event:a\ndata:x:y\n\n", "a=x:y;"},
        {"a field without a colon", "data\n\n", "=;"},
        {"empty lines", "\n\n\ndata: x\n\n\n", "=x;"},
        {"a long name is cut", "event: abcdefghijklmnopqrstuvwxyz\ndata: x\n\n",
         "abcdefghijklmnopqrstuvw=x;"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t step = 1; step < 12; step++) {
            AUTO_BUF got = BUF_INIT;
            read_all(cases[i].text, step, &got);
            if (strcmp(got.data, cases[i].want) != 0)
                fail_msg("%s by %zu: got %s, want %s", cases[i].name, step, got.data,
                         cases[i].want);
        }
    }
}

static void an_endless_event_is_refused(void **state) {
    (void)state;
    static char chunk[1u << 20];
    static const char field[] = {'d', 'a', 't', 'a', ':'};
    for (int lines = 0; lines < 2; lines++) {
        struct sse s = SSE_INIT;
        struct err e;
        int rc = 0;
        memset(chunk, 'x', sizeof chunk);
        if (lines) { /* many lines of data instead of one long one */
            memcpy(chunk, field, sizeof field);
            chunk[sizeof chunk - 1] = '\n';
        }
        for (unsigned i = 0; i < 80 && rc == 0; i++) {
            sse_add(&s, chunk, sizeof chunk);
            rc = sse_next(&s, &e);
        }
        assert_int_equal(rc, -1);
        assert_string_equal(e.kind, "bad_reply");
        sse_done(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_out_whole),
        cmocka_unit_test(an_endless_event_is_refused),
    };
    return cmocka_run_group_tests_name("remote/sse", tests, NULL, NULL);
}
