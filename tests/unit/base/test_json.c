/* base/json: whatever goes in, valid JSON comes out; what is read is read strictly. */

#include "base/json.h"

#include "base/json_value.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void strings_are_escaped(void **state) {
    (void)state;
#define FFFD    "\xef\xbf\xbd"
#define TEXT(s) s, sizeof s - 1
    static const struct {
        const char *name, *text;
        size_t len;
        const char *want;
    } cases[] = {
        {"empty", TEXT(""), ""},
        {"plain", TEXT("abc /"), "abc /"},
        {"quote and backslash", TEXT("\"\\"), "\\\"\\\\"},
        {"short escapes", TEXT("\b\f\n\r\t"), "\\b\\f\\n\\r\\t"},
        {"NUL inside", TEXT("a\0b"), "a\\u0000b"},
        {"other controls", TEXT("\x01\x1b\x1f"), "\\u0001\\u001b\\u001f"},
        {"DEL", TEXT("\x7f"), "\\u007f"},
        {"two, three and four bytes", TEXT("ä€😀"), "ä€😀"},
        {"C1 controls and NEL", TEXT("\xc2\x80\xc2\x85\xc2\x9f\xc2\xa0"),
         "\\u0080\\u0085\\u009f\xc2\xa0"},
        {"line separators", TEXT("\u2027\u2028\u2029\u2030"), "\u2027\\u2028\\u2029\u2030"},
        {"lone continuation", TEXT("a\x80z"), "a" FFFD "z"},
        {"bytes that never occur", TEXT("\xc0\xc1\xf5\xff"), FFFD FFFD FFFD FFFD},
        {"overlong slash", TEXT("\xc0\xaf"), FFFD FFFD},
        {"overlong in three", TEXT("\xe0\x80\xaf"), FFFD FFFD FFFD},
        {"surrogate", TEXT("\xed\xa0\x80"), FFFD FFFD FFFD},
        {"above U+10FFFF", TEXT("\xf4\x90\x80\x80"), FFFD FFFD FFFD FFFD},
        {"last of all", TEXT("\xf4\x8f\xbf\xbf"), "\xf4\x8f\xbf\xbf"},
        {"cut at the end, two of three", TEXT("a\xe2\x82"), "a" FFFD},
        {"cut at the end, three of four", TEXT("\xf0\x9f\x98"), FFFD},
        {"cut in the middle", TEXT("\xe2\x82z\xc3"), FFFD "z" FFFD},
        {"cut by another", TEXT("\xf0\x9f\xc3\xa4"), FFFD "ä"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF b = BUF_INIT;
        json_escape(&b, cases[i].text, cases[i].len);
        if (strcmp(b.data, cases[i].want) != 0)
            fail_msg("%s: got %s, want %s", cases[i].name, b.data, cases[i].want);
    }
}

static void many_escapes_in_a_row_are_all_there(void **state) {
    char text[300];
    (void)state;
    memset(text, 1, sizeof text);
    for (size_t len = 0; len < sizeof text; len++) {
        AUTO_BUF b = BUF_INIT;
        json_escape(&b, text, len);
        assert_int_equal(b.len, 6 * len);
        assert_int_equal(strlen(b.data), b.len);
        for (size_t i = 0; i < len; i++)
            assert_memory_equal(b.data + 6 * i, "\\u0001", 6);
    }
}

/* Bytes without any order: jansson, which checks UTF-8 itself, must take every one of the results.
 */
static void any_bytes_become_valid_json(void **state) {
    (void)state;
    uint32_t seed = 1;
    for (int round = 0; round < 2000; round++) {
        char text[48];
        for (size_t i = 0; i < sizeof text; i++) {
            seed = seed * 1664525u + 1013904223u;
            text[i] = (char)(round % 2 ? seed >> 24 : 0x80 | (seed >> 26));
        }
        AUTO_BUF b = BUF_INIT;
        struct jw j = JW_INIT(&b);
        jw_array(&j);
        jw_strn(&j, text, sizeof text);
        jw_array_end(&j);
        json_error_t why;
        json_auto_t *root = json_loadb(b.data, b.len, JSON_ALLOW_NUL, &why);
        if (!root)
            fail_msg("round %d: %s", round, why.text);
    }
}

static void commas_are_where_they_belong(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    struct jw j = JW_INIT(&b);
    jw_object(&j);
    jw_key_str(&j, "s", "x\"y");
    jw_key_str(&j, "none", NULL);
    jw_key(&j, "list");
    jw_array(&j);
    jw_int(&j, INT64_MIN);
    jw_uint(&j, UINT64_MAX);
    jw_array(&j);
    jw_array_end(&j);
    jw_object(&j);
    jw_object_end(&j);
    jw_raw(&j, "[1, 2]", 6);
    jw_array_end(&j);
    jw_key_bool(&j, "yes", true);
    jw_key_bool(&j, "no", false);
    jw_key_int(&j, "i", -1);
    jw_key_uint(&j, "u", 1);
    jw_key_real(&j, "r", 0.5);
    jw_key_null(&j, "n");
    jw_key(&j, "o");
    jw_object(&j);
    jw_key_int(&j, "a\nb", 0);
    jw_object_end(&j);
    jw_object_end(&j);
    assert_string_equal(b.data,
                        "{\"s\":\"x\\\"y\",\"none\":null,\"list\":[-9223372036854775808,"
                        "18446744073709551615,[],{},[1, 2]],\"yes\":true,\"no\":false,\"i\":-1,"
                        "\"u\":1,\"r\":0.5,\"n\":null,\"o\":{\"a\\nb\":0}}");
}

static void reals_are_short_and_read_back_the_same(void **state) {
    (void)state;
    static const struct {
        double v;
        const char *want;
    } cases[] = {
        {0, "0.0"},
        {1, "1.0"},
        {-2.5, "-2.5"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1e22, "1e+22"},
        {1e-7, "1e-07"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {5e-324, "4.94065645841247e-324"},
        {INFINITY, "null"},
        {-INFINITY, "null"},
        {NAN, "null"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF b = BUF_INIT;
        struct jw j = JW_INIT(&b);
        jw_real(&j, cases[i].v);
        assert_string_equal(b.data, cases[i].want);
        if (isfinite(cases[i].v))
            assert_true(strtod(b.data, NULL) == cases[i].v);
    }
}

static void reading_is_strict(void **state) {
    (void)state;
    static const struct {
        const char *name, *text, *end; /* of the error; NULL when it is fine */
    } cases[] = {
        {"an object", "{\"a\": [1, 2.5, \"x\", null, true]}", NULL},
        {"an array", " [ ] ", NULL},
        {"as deep as allowed", "[[[{}]]]", NULL},
        {"brackets in strings are text", "[\"[[[[[[\\\"[[[[\", \"\\\\\", [[[]]]]", NULL},
        {"one level too many", "[[[[[]]]]]", ": line 1, column 5"},
        {"too deep on a later line", "{\n  \"ä\": [[[{\n}]]]}", ": line 2, column 11"},
        {"duplicate key", "{\"a\": 1, \"a\": 2}", ": line 1, column 12"},
        {"trailing text", "{} x", ": line 1, column 4"},
        {"a second value", "{} {}", ": line 1, column 4"},
        {"empty", "", ": line 1, column 1"},
        {"not closed", "[1,\n2", ": line 2, column 1"},
        {"a bare value", "1", ": line 1, column 1"},
        {"NaN", "[NaN]", ": line 1, column 4"},
        {"single quotes", "{'a': 1}", ": line 1, column 2"},
        {"trailing comma", "[1,]", ": line 1, column 4"},
        {"comment", "[] // no", ": line 1, column 4"},
        {"control character in a string", "[\"a\nb\"]", ": line 1, column 3"},
        {"NUL in a string", "[\"a\\u0000\"]", ": line 1, column 10"},
        {"lone surrogate", "[\"\\ud800\"]", ": line 1, column 9"},
        {"ill-formed UTF-8", "[\"\xff\"]", ": line 1, column 2"},
        {"integer too large", "[99999999999999999999]", ": line 1, column 21"},
        {"real too large", "[1e999]", ": line 1, column 6"},
        {"byte order mark", "\xef\xbb\xbf{}", ": line 1, column 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_auto_t *root = NULL;
        struct err e = {0};
        int r = json_read(cases[i].text, strlen(cases[i].text), 4, &root, &e);
        if (r != (cases[i].end ? -1 : 0) || !root != !!cases[i].end)
            fail_msg("%s: %d, %s", cases[i].name, r, e.text);
        if (!cases[i].end)
            continue;
        assert_string_equal(e.kind, "bad_json");
        size_t want = strlen(cases[i].end), len = strlen(e.text);
        if (len < want || strcmp(e.text + len - want, cases[i].end) != 0)
            fail_msg("%s: \"%s\" does not end in \"%s\"", cases[i].name, e.text, cases[i].end);
    }
}

static void a_deep_text_is_refused_without_recursion(void **state) {
    (void)state;
    enum { DEEP = 1000000 };
    char *text = malloc(DEEP);
    assert_non_null(text);
    memset(text, '[', DEEP);
    json_auto_t *root = NULL;
    struct err e;
    assert_int_equal(json_read(text, DEEP, JSON_DEPTH_MAX, &root, &e), -1);
    assert_string_equal(e.text, "JSON is nested more than 64 levels deep: line 1, column 65");
    free(text);
}

static void a_text_of_too_many_values_is_refused(void **state) {
    (void)state;
    enum { PAIR = 3, MANY = JSON_VALUES_MAX };
    char *text = malloc(PAIR * MANY + PAIR);
    json_auto_t *root = NULL;
    struct err e;
    assert_non_null(text);
    memset(text, ' ', PAIR * MANY + PAIR);
    text[0] = '[';
    for (size_t i = 0; i < MANY - 1; i++) {
        text[1 + i * 2] = i ? ',' : ' ';
        text[2 + i * 2] = '0';
    }
    text[PAIR * MANY] = ']';
    assert_int_equal(json_read(text, PAIR * MANY + 1, 4, &root, &e), 0);
    assert_int_equal(json_array_size(root), MANY - 1);
    for (size_t i = 0; i < 6; i++)
        text[PAIR * MANY - 6 + i] = i % 2 ? '0' : ',';
    json_t *none = NULL;
    assert_int_equal(json_read(text, PAIR * MANY + 1, 4, &none, &e), -1);
    assert_non_null(strstr(e.text, "more than 500000 values: line 1"));
    static const char commas[] = "[\"\\\",[[[[[\"]"; /* not of the text's own shape */
    assert_int_equal(json_read(commas, sizeof commas - 1, 1, &none, &e), 0);
    json_decref(none);
    free(text);
}

static void an_error_is_one_clean_line(void **state) {
    (void)state;
    static const char text[] = "[\x1b[31m\n]";
    json_auto_t *root = NULL;
    struct err e;
    assert_int_equal(json_read(text, sizeof text - 1, 4, &root, &e), -1);
    for (const char *p = e.text; *p; p++)
        assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
}

static void one_value_is_told_from_other_text(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool is;
    } cases[] = {
        {"1", true},
        {" -0.5e+10 ", true},
        {"\"\"", true},
        {"[]", true},
        {"{}", true},
        {"[1, [2, {\"a\": null}], true, false]", true},
        {"{\"a\" : 1 , \"b\":[{}]}", true},
        {"123456789012345678901234567890", true},
        {"\"\\u00e9\\n\\\\\\\"\"", true},
        {"\"\xc3\xa9\"", true},
        {"", false},
        {" ", false},
        {"1 2", false},
        {"01", false},
        {"1.", false},
        {".5", false},
        {"+1", false},
        {"1e", false},
        {"-", false},
        {"NaN", false},
        {"nul", false},
        {"nulll", false},
        {"'a'", false},
        {"\"", false},
        {"\"\n\"", false},
        {"\"\\x\"", false},
        {"\"\\u12g4\"", false},
        {"\"\\", false},
        {"\"\xff\"", false},
        {"[", false},
        {"[1", false},
        {"[1,", false},
        {"[1,]", false},
        {"[,1]", false},
        {"[1 2]", false},
        {"[1}", false},
        {"]", false},
        {"{\"a\"}", false},
        {"{\"a\":}", false},
        {"{\"a\":1,}", false},
        {"{1:2}", false},
        {"{\"a\":1 \"b\":2}", false},
        {"{}}", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (json_is_value(cases[i].text, strlen(cases[i].text)) != cases[i].is)
            fail_msg("%s", cases[i].text);
    assert_false(json_is_value("[\0]", 3));
    char deep[2 * JSON_VALUE_DEPTH + 2];
    memset(deep, '[', JSON_VALUE_DEPTH + 1);
    memset(deep + JSON_VALUE_DEPTH + 1, ']', JSON_VALUE_DEPTH + 1);
    assert_false(json_is_value(deep, sizeof deep)); /* an innermost one that is empty is no level */
    assert_true(json_is_value(deep + 1, sizeof deep - 2));
}

static void a_member_is_found_without_reading_the_rest(void **state) {
    (void)state;
    static const char text[] = "{\"a\":{\"b\":1,\"}\":[\"\\\\\\\"\",2]},\"b\":\"x\\\"]\","
                               "\"c\":[],\"d\":12}";
    static const struct {
        const char *name, *want;
    } cases[] = {
        {"a", "{\"b\":1,\"}\":[\"\\\\\\\"\",2]}"},
        {"b", "\"x\\\"]\""},
        {"c", "[]"},
        {"d", "12"},
        {"e", ""},
        {"}", ""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json_span found = json_member(text, sizeof text - 1, cases[i].name);
        assert_int_equal(found.len, strlen(cases[i].want));
        assert_memory_equal(found.at ? found.at : "", cases[i].want, found.len);
    }
    for (size_t len = 0; len < sizeof text - 1; len++) /* what is cut does no harm */
        json_member(text, len, "d");
}

static void members_of_another_object_stand_among_ours(void **state) {
    (void)state;
    AUTO_BUF text = BUF_INIT;
    struct jw j = JW_INIT(&text);
    jw_object(&j);
    jw_members(&j, "{}", 2);
    jw_key_int(&j, "a", 1);
    jw_members(&j, "{\"b\":2,\"c\":[]}", 14);
    jw_members(&j, "{}", 2);
    jw_key_int(&j, "d", 3);
    jw_object_end(&j);
    assert_string_equal(text.data, "{\"a\":1,\"b\":2,\"c\":[],\"d\":3}");
}

static void a_tree_is_written_or_what_stands_for_it(void **state) {
    (void)state;
    AUTO_BUF text = BUF_INIT;
    struct jw j = JW_INIT(&text);
    json_auto_t *tree = json_pack("{s:[i, n]}", "a", 1);
    jw_array(&j);
    jw_json(&j, tree, "{}");
    jw_json(&j, json_object_get(tree, "b"), "{}");
    jw_array_end(&j);
    assert_string_equal(text.data, "[{\"a\":[1,null]},{}]");
}

static void escaped_text_is_not_escaped_again(void **state) {
    (void)state;
    AUTO_BUF text = BUF_INIT, inside = BUF_INIT;
    struct jw j = JW_INIT(&text);
    json_escape(&inside, "a\n\"", 3);
    jw_array(&j);
    jw_escaped(&j, inside.data, inside.len);
    jw_escaped(&j, "", 0);
    jw_array_end(&j);
    assert_string_equal(text.data, "[\"a\\n\\\"\",\"\"]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_is_written_or_what_stands_for_it),
        cmocka_unit_test(escaped_text_is_not_escaped_again),
        cmocka_unit_test(members_of_another_object_stand_among_ours),
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(many_escapes_in_a_row_are_all_there),
        cmocka_unit_test(any_bytes_become_valid_json),
        cmocka_unit_test(commas_are_where_they_belong),
        cmocka_unit_test(reals_are_short_and_read_back_the_same),
        cmocka_unit_test(reading_is_strict),
        cmocka_unit_test(a_deep_text_is_refused_without_recursion),
        cmocka_unit_test(a_text_of_too_many_values_is_refused),
        cmocka_unit_test(an_error_is_one_clean_line),
        cmocka_unit_test(one_value_is_told_from_other_text),
        cmocka_unit_test(a_member_is_found_without_reading_the_rest),
    };
    return cmocka_run_group_tests_name("base/json", tests, NULL, NULL);
}
