/* http/answer: what is an answer, where it ends, and what is refused. */

#include "http/answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct got {
    struct buf body;
    unsigned heads;
};

static void take_head(void *arg, const struct answer *a) {
    struct got *g = arg;
    (void)a;
    g->heads++;
}

static void take_data(void *arg, const char *data, size_t len) {
    struct got *g = arg;
    buf_add(&g->body, data, len);
}

static struct answer new_answer(struct got *g) {
    struct answer a = ANSWER_INIT;
    a.arg = g;
    a.on_head = take_head;
    a.on_data = take_data;
    return a;
}

#define OK "HTTP/1.1 200 OK\r\n"

static void an_answer_ends_where_its_head_says(void **state) {
    static const struct {
        const char *text, *body, *rest;
    } cases[] = {
        {OK "Content-Length: 5\r\n\r\nhello", "hello", ""},
        {OK "Content-Length: 5\r\n\r\nhello and more", "hello", " and more"},
        {OK "content-length:5\t\r\n\r\nhello", "hello", ""},
        {OK "Content-Length: 0\r\n\r\nx", "", "x"},
        {OK "\r\nall until the end", "all until the end", ""},
        {"HTTP/1.0 200\r\n\r\nold", "old", ""},
        {OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nrest", "hello", "rest"},
        {OK "Transfer-Encoding: Chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\nA: b\r\n\r\n", "hello",
         ""},
        {"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", "", "hello"},
        {"HTTP/1.1 304 Not Modified\r\n\r\nhello", "", "hello"},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" OK
         "Content-Length: 2\r\n\r\nhi",
         "hi", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t len = strlen(cases[i].text);
        for (size_t step = 1; step <= len; step += len - 1) {
            struct got g = {.body = BUF_INIT};
            struct answer a = new_answer(&g);
            size_t used = 0;
            for (size_t at = 0; at < len; at += step)
                used += answer_add(&a, cases[i].text + at, len - at < step ? len - at : step);
            answer_end(&a);
            if (a.state != ANSWER_WHOLE)
                fail_msg("%s: %s", cases[i].text, a.wrong);
            assert_int_equal(g.heads, 1);
            assert_string_equal(g.body.data, cases[i].body);
            assert_string_equal(cases[i].text + used, cases[i].rest);
            answer_done(&a);
            buf_done(&g.body);
        }
    }
}

static void what_could_be_read_in_two_ways_is_wrong(void **state) {
    static const char *const cases[] = {
        OK "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        OK "Content-Length: 5, 5\r\n\r\nhello",
        OK "Content-Length: +5\r\n\r\nhello",
        OK "Content-Length: 0x5\r\n\r\nhello",
        OK "Content-Length:\r\n\r\nhello",
        OK "Content-Length: 99999999999999999999\r\n\r\nhello",
        OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        OK "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        OK "Transfer-Encoding: identity\r\n\r\nhello",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        OK "Content-Length : 5\r\n\r\nhello",
        OK " Content-Length: 5\r\n\r\nhello",
        OK "A: b\r\n c\r\n\r\n",
        OK "A: b\rc\r\n\r\n",
        OK "A: b\nc: d\r\n\r\n",
        OK "no colon\r\n\r\n",
        OK ": no name\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\nhello\r\n\r\n",
        OK "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
        OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n",
        OK "Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
        OK "Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n",
        OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
        OK "Content-Length: 5\r\n\r\nhel",
        "",
        OK "Content-Le",
        "HTTP/2 200\r\n\r\n",
        "HTTP/1.2 200 OK\r\n\r\n",
        "http/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 999 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "<html>\r\n\r\n",
        "\r\n" OK "\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", /* which nobody asked for */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct got g = {.body = BUF_INIT};
        struct answer a = new_answer(&g);
        answer_add(&a, cases[i], strlen(cases[i]));
        answer_end(&a);
        if (a.state != ANSWER_WRONG || !a.wrong)
            fail_msg("was taken: %s", cases[i]);
        answer_done(&a);
        buf_done(&g.body);
    }
}

static void heads_are_bounded(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct got g = {.body = BUF_INIT};
        struct answer a = new_answer(&g);
        AUTO_BUF text = BUF_INIT;
        buf_adds(&text, kind == 2 ? "" : OK);
        for (int i = 0; i < 20000; i++)
            buf_addf(&text, "%s",
                     kind == 0   ? "A: b\r\n"
                     : kind == 1 ? "x"
                                 : "HTTP/1.1 102 Wait\r\n\r\n");
        buf_adds(&text, "\r\n\r\n");
        answer_add(&a, text.data, text.len);
        assert_int_equal(a.state, ANSWER_WRONG);
        assert_true(a.head.len <= ANSWER_HEAD_MAX);
        answer_done(&a);
    }
}

static void what_follows_a_switch_is_left(void **state) {
    static const char text[] = "HTTP/1.1 101 Switching Protocols\r\nConnection: a, Upgrade\r\n"
                               "Upgrade: websocket\r\n\r\nframes";
    struct got g = {.body = BUF_INIT};
    struct answer a = new_answer(&g);
    (void)state;
    a.may_switch = true;
    size_t used = answer_add(&a, text, sizeof text - 1);
    assert_int_equal(a.state, ANSWER_SWITCHED);
    assert_string_equal(text + used, "frames");
    assert_string_equal(answer_field(&a, "UPGRADE"), "websocket");
    assert_true(answer_lists(&a, "connection", "upgrade"));
    assert_false(answer_lists(&a, "connection", "up"));
    assert_int_equal(g.heads, 1);
    answer_done(&a);
}

static void the_answer_to_head_has_no_body(void **state) {
    static const char text[] = OK "Content-Length: 5\r\n\r\n";
    struct got g = {.body = BUF_INIT};
    struct answer a = new_answer(&g);
    (void)state;
    a.to_head = true;
    answer_add(&a, text, sizeof text - 1);
    assert_int_equal(a.state, ANSWER_WHOLE);
    assert_int_equal(a.length, 5);
    answer_done(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_ends_where_its_head_says),
        cmocka_unit_test(what_could_be_read_in_two_ways_is_wrong),
        cmocka_unit_test(heads_are_bounded),
        cmocka_unit_test(what_follows_a_switch_is_left),
        cmocka_unit_test(the_answer_to_head_has_no_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
