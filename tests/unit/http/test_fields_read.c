/* http/fields_read: what is JSON and what is not, with the words of CPython; long and many faults.
 */

#include "fields_fixture.h"

#include "http/json_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void only_json_content_types_are_read(void **state) {
    (void)state;
    static const char *const good[] = {
        "application/json",   "Application/JSON; charset=utf-8", " application/json ;x",
        "application/a+json", "application/problem+JSON;q=1",
    };
    static const char *const bad[] = {
        NULL,
        "",
        "text/plain",
        "text/json",
        "application/jsonp",
        "application/",
        "application/x/y+json",
        "application/json-patch",
        "json",
        "application/x-www-form-urlencoded",
    };
    static const char body[] = "{\"code\":\"x\"}";
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        AUTO_OUTCOME o = read_bytes(&run_schema, good[i], body, sizeof body - 1);
        assert_int_equal(o.rc, 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        AUTO_OUTCOME o = read_bytes(&run_schema, bad[i], body, sizeof body - 1);
        assert_int_equal(o.status, 422);
        assert_string_equal(o.reply.data,
                            "{\"detail\":[{\"type\":\"model_attributes_type\",\"loc\":[\"body\"],"
                            "\"msg\":\"" MODEL "\",\"input\":\"{\\\"code\\\":\\\"x\\\"}\"}]}");
    }
}

static void what_is_not_utf8_is_refused(void **state) {
    (void)state;
    static const char *const bodies[] = {
        "{\"code\":\"\xff\"}",     "{\"code\":\"\xed\xa0\x80\"}", /* a surrogate */
        "{\"code\":\"\xc0\xaf\"}",                                /* overlong */
        "{\"code\":\"\xc3",        "{broken \xff",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        AUTO_OUTCOME o = read_text(&run_schema, bodies[i]);
        assert_int_equal(o.rc, -1);
        assert_int_equal(o.status, 400);
        assert_string_equal(o.reply.data, "{\"detail\":\"There was an error parsing the body\"}");
    }
    expect(&run_schema, "\xef\xbb\xbf{\"code\":\"a byte order mark is dropped\"}", NULL);
}

struct broken_case {
    const char *body;
    unsigned at;
    const char *why;
};

static void expect_broken(const struct broken_case *c) {
    AUTO_BUF detail = BUF_INIT;
    struct jw j = JW_INIT(&detail);
    buf_addf(&detail,
             "{\"type\":\"json_invalid\",\"loc\":[\"body\",%u],"
             "\"msg\":\"JSON decode error\",\"input\":{},\"ctx\":{\"error\":",
             c->at);
    jw_str(&j, c->why);
    buf_adds(&detail, "}}");
    expect(&run_schema, c->body, detail.data);
}

/* Made by CPython 3.11. */
static const struct broken_case broken[] = {
    {"{code:1}", 1, "Expecting property name enclosed in double quotes"},
    {"{", 1, "Expecting property name enclosed in double quotes"},
    {"[", 1, "Expecting value"},
    {"   ", 3, "Expecting value"},
    {"{\"a\"", 4, "Expecting ':' delimiter"},
    {"{\"a\" 1}", 5, "Expecting ':' delimiter"},
    {"{\"a\":", 5, "Expecting value"},
    {"{\"a\":}", 5, "Expecting value"},
    {"{\"a\":1", 6, "Expecting ',' delimiter"},
    {"{\"a\":1,}", 7, "Expecting property name enclosed in double quotes"},
    {"{\"a\":1 \"b\":2}", 7, "Expecting ',' delimiter"},
    {"{'a':1}", 1, "Expecting property name enclosed in double quotes"},
    {"[1,]", 3, "Expecting value"},
    {"[1 2]", 3, "Expecting ',' delimiter"},
    {"[1,,2]", 3, "Expecting value"},
    {"nul", 0, "Expecting value"},
    {"tru e", 0, "Expecting value"},
    {"1.", 1, "Extra data"},
    {"01", 1, "Extra data"},
    {"-", 0, "Expecting value"},
    {"+1", 0, "Expecting value"},
    {".5", 0, "Expecting value"},
    {"\"abc", 0, "Unterminated string starting at"},
    {"\"a\011b\"", 2, "Invalid control character at"},
    {"\"a\\", 0, "Unterminated string starting at"},
    {"\"\\x\"", 1, "Invalid \\escape"},
    {"\"\\u12\"", 2, "Invalid \\uXXXX escape"},
    {"\"\\u123", 2, "Invalid \\uXXXX escape"},
    {"\"\\u12g4\"", 2, "Invalid \\uXXXX escape"},
    {"\"\\ud83d\\uXX\"", 8, "Invalid \\uXXXX escape"},
    {"{\"\303\251\":\"\360\237\230\200\" x}", 9, "Expecting ',' delimiter"},
    {"[\"\303\251\360\237\230\200\",]", 6, "Expecting value"},
    {"{} x", 3, "Extra data"},
    {"[1]]", 3, "Extra data"},
    {"{\"a\":1}}", 7, "Extra data"},
    {"[\"a\",\012 \"b\" \"c\"]", 11, "Expecting ',' delimiter"},
    {"1e", 1, "Extra data"},
    {"\"\177\001\"", 2, "Invalid control character at"},
    {"{\"a\":NaN,", 9, "Expecting property name enclosed in double quotes"},
};

static void broken_json_has_the_words_and_the_place_of_cpython(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
        expect_broken(&broken[i]);
}

static void what_python_takes_and_we_do_not_is_said_clearly(void **state) {
    (void)state;
    static const struct broken_case cases[] = {
        {"{\"a\":NaN}", 5, "NaN and Infinity are not JSON"},
        {"[1,-Infinity]", 3, "NaN and Infinity are not JSON"},
        {"{\"a\":1,\"a\":2}", 10, "Duplicate key"},
        {"[9223372036854775808]", 20, "Number out of range (integers have 64 bits)"},
        {"[-1e999]", 7, "Number out of range (integers have 64 bits)"},
        {"[\"\303\251\\u0000\"]", 3, "NUL is not allowed in strings"},
        {"[\"\\ud83d\"]", 2, "Surrogate without its other half"},
        {"[\"\\ude00\\ud83d\"]", 2, "Surrogate without its other half"},
        {"[\"\\ud83d\\u0041\"]", 2, "Surrogate without its other half"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_broken(&cases[i]);
    expect(&run_schema, "{\"code\":\"\\uD83D\\uDE00\"}", NULL);
}

static void nesting_is_bounded(void **state) {
    (void)state;
    for (size_t depth = 63; depth <= 100000; depth = depth < 65 ? depth + 1 : depth * 40) {
        AUTO_BUF body = BUF_INIT;
        buf_adds(&body, "{\"code\":\"\",\"x\":");
        for (size_t i = 0; i < depth; i++)
            buf_addc(&body, '[');
        for (size_t i = 0; i < depth; i++)
            buf_addc(&body, ']');
        buf_addc(&body, '}');
        if (depth == 63)
            expect(&run_schema, body.data, NULL);
        else
            expect_broken(&(struct broken_case){body.data, 15 + 63, "More than 64 levels deep"});
    }
}

/* The fault's member of the first of the faults. */
static const json_t *first(const json_t *root, const char *member) {
    return json_object_get(json_array_get(json_object_get(root, "detail"), 0), member);
}

static json_t *reply_of(const struct outcome *o) {
    struct err e;
    json_t *root = NULL;
    assert_int_equal(json_read(o->reply.data, o->reply.len, JSON_DEPTH_MAX, &root, &e), 0);
    return root;
}

static void a_long_input_is_cut_at_a_character(void **state) {
    (void)state;
    AUTO_BUF text = BUF_INIT;
    buf_adds(&text, "x");
    while (text.len < 3000)
        buf_adds(&text, "\303\251");
    /* As a string: 1 + 2 * 499 = 999 bytes are whole characters. */
    AUTO_OUTCOME plain = read_bytes(&run_schema, "text/plain", text.data, text.len);
    json_auto_t *root = reply_of(&plain);
    const json_t *input = first(root, "input");
    assert_int_equal(json_string_length(input), 999 + 3);
    assert_memory_equal(json_string_value(input), text.data, 999);
    assert_string_equal(json_string_value(input) + 999, "...");
    /* Inside an object: what is cut is its JSON, 10 bytes further on. */
    AUTO_BUF body = BUF_INIT;
    buf_addf(&body, "{\"stdin\":\"%s\"}", text.data);
    AUTO_OUTCOME missing = read_text(&run_schema, body.data);
    json_auto_t *other = reply_of(&missing);
    input = first(other, "input");
    assert_int_equal(json_string_length(input), 999 + 3);
    assert_memory_equal(json_string_value(input), body.data, 999);
}

static void an_input_of_exactly_the_bound_is_quoted_whole(void **state) {
    (void)state;
    for (size_t len = FIELDS_INPUT_MAX; len <= FIELDS_INPUT_MAX + 1; len++) {
        AUTO_BUF body = BUF_INIT;
        buf_adds(&body, "{\"x\":\"");
        while (body.len < len - 2)
            buf_addc(&body, 'y');
        buf_adds(&body, "\"}");
        AUTO_OUTCOME o = read_text(&run_schema, body.data);
        json_auto_t *root = reply_of(&o);
        assert_int_equal(json_is_object(first(root, "input")), len == FIELDS_INPUT_MAX);
    }
}

static void there_are_at_most_a_hundred_faults(void **state) {
    (void)state;
    AUTO_BUF body = BUF_INIT;
    buf_adds(&body, "{\"code\":\"\",\"files\":[");
    for (int i = 0; i < 5000; i++)
        buf_addf(&body, "%s{}", i ? "," : "");
    buf_adds(&body, "]}");
    AUTO_OUTCOME o = read_text(&run_schema, body.data);
    json_auto_t *root = reply_of(&o);
    assert_int_equal(json_array_size(json_object_get(root, "detail")), FIELDS_FAULTS_MAX);
}

static void values_are_counted_outside_of_strings(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t values;
    } cases[] = {
        {"", 1},
        {"1", 1},
        {"[{},{}]", 5},
        {"{\"a\":1,\"b\":[2]}", 4},
        {"\"[,{\"", 1},
        {"[\"a\\\",[\",0]", 3},
        {"[\"\\\\\",0]", 3},
        {"[\"never closed,,,", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text;
        assert_int_equal(json_text_values(text, strlen(text), 100), cases[i].values);
    }
    assert_int_equal(json_text_values("[,,,,,,,,", 9, 3), 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_json_content_types_are_read),
        cmocka_unit_test(what_is_not_utf8_is_refused),
        cmocka_unit_test(broken_json_has_the_words_and_the_place_of_cpython),
        cmocka_unit_test(what_python_takes_and_we_do_not_is_said_clearly),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(a_long_input_is_cut_at_a_character),
        cmocka_unit_test(an_input_of_exactly_the_bound_is_quoted_whole),
        cmocka_unit_test(there_are_at_most_a_hundred_faults),
        cmocka_unit_test(values_are_counted_outside_of_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
