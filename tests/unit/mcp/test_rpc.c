/* mcp/rpc: what a message is, and what is refused. */

#include "base/buf.h"
#include "mcp/rpc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *text;
    enum rpc_kind kind;
    const char *says; /* the method; or part of what is wrong; or NULL */
} cases[] = {
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", RPC_REQUEST, "ping"},
    {"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\",\"params\":{}}", RPC_REQUEST, "ping"},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", RPC_NOTIFICATION,
     "notifications/initialized"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", RPC_RESPONSE, NULL},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-1,\"message\":\"x\"}}", RPC_RESPONSE,
     NULL},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-1,\"message\":\"x\"}}", RPC_RESPONSE,
     NULL},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}", RPC_BAD, "id is not"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}", RPC_BAD,
     "method, result or error"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":3}", RPC_BAD, "result is not"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":\"x\"}}", RPC_BAD, "error is not"},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", RPC_BAD, "id is not"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", RPC_BAD, "id is not"},
    {"{\"jsonrpc\":\"2.0\",\"id\":[],\"method\":\"ping\"}", RPC_BAD, "id is not"},
    {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", RPC_BAD, "jsonrpc is not"},
    {"{\"id\":1,\"method\":\"ping\"}", RPC_BAD, "jsonrpc is not"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", RPC_BAD, "method is not"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\"}", RPC_BAD, "method is not"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":[]}", RPC_BAD, "params is not"},
    {"{\"jsonrpc\":\"2.0\"}", RPC_BAD, "method, result or error"},
};

static void a_message_is_one_of_three_or_bad(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        json_t *tree = rpc_parse(cases[i].text, strlen(cases[i].text), &e);
        assert_non_null(tree);
        struct rpc r = rpc_read(tree);
        assert_int_equal(r.kind, cases[i].kind);
        if (r.kind == RPC_BAD)
            assert_non_null(strstr(r.wrong, cases[i].says));
        else if (cases[i].says)
            assert_string_equal(r.method, cases[i].says);
        json_decref(tree);
    }
}

/* `n` times the piece, within the ends. */
static json_t *parse_many(const char *begin, const char *piece, size_t n, const char *end,
                          struct err *e) {
    AUTO_BUF text = BUF_INIT;
    buf_adds(&text, begin);
    for (size_t i = 0; i < n; i++)
        buf_adds(&text, piece);
    buf_adds(&text, end);
    return rpc_parse(text.data, text.len, e);
}

static void messages_are_bounded(void **state) {
    (void)state;
    struct err e = {0};
    json_t *tree = parse_many("[", "[", JSON_DEPTH_MAX - 1, "", &e);
    assert_null(tree);
    assert_null(parse_many("", "[", 100000, "", &e));
    assert_null(parse_many("[", "1,", RPC_VALUES_MAX + 1, "1]", &e));
    assert_non_null(strstr(e.text, "values"));
    assert_null(parse_many("[\"", "x", RPC_MAX, "\"]", &e));
    assert_non_null(strstr(e.text, "bytes"));
    tree = parse_many("[\"", "x", RPC_MAX - 4, "\"]", &e);
    assert_non_null(tree);
    json_decref(tree);
}

static void what_could_be_read_in_two_ways_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "{\"a\":1,\"a\":2}", "[\"\\u0000\"]", "[\"\xff\"]", "[NaN]", "[1] x", "", "7"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err e = {0};
        assert_null(rpc_parse(bad[i], strlen(bad[i]), &e));
        assert_true(strlen(e.text) > 0);
    }
}

static void ids_come_back_as_they_came(void **state) {
    (void)state;
    AUTO_BUF text = BUF_INIT;
    json_t *id = json_string("a\n\"");
    rpc_error(&text, id, RPC_PARAMS, "no", "{\"uri\":\"x\"}");
    assert_string_equal(text.data,
                        "{\"jsonrpc\":\"2.0\",\"id\":\"a\\n\\\"\",\"error\":{\"code\":-32602,"
                        "\"message\":\"no\",\"data\":{\"uri\":\"x\"}}}");
    json_decref(id);
    buf_clear(&text);
    rpc_error(&text, NULL, RPC_PARSE, "no", NULL);
    assert_null(strstr(text.data, "\"id\""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_one_of_three_or_bad),
        cmocka_unit_test(messages_are_bounded),
        cmocka_unit_test(what_could_be_read_in_two_ways_is_refused),
        cmocka_unit_test(ids_come_back_as_they_came),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
