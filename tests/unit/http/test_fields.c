/* http/fields: bodies are taken or refused as FastAPI and pydantic do it. */

#include "fields_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void faults_are_told_as_pydantic_tells_them(void **state) {
    (void)state;
    static const struct body_case cases[] = {
        {&run_schema, "{}",
         "{\"type\":\"missing\",\"loc\":[\"body\",\"code\"],\"msg\":\"Field "
         "required\",\"input\":{}}"},
        {&run_schema, "{\"code\": 1}",
         "{\"type\":\"string_type\",\"loc\":[\"body\",\"code\"],"
         "\"msg\":\"Input should be a valid string\",\"input\":1}"},
        {&run_schema, "{\"code\": \"x\", \"timeout_ms\": 0}",
         "{\"type\":\"greater_than_equal\",\"loc\":[\"body\",\"timeout_ms\"],"
         "\"msg\":\"Input should be greater than or equal to 1\",\"input\":0,\"ctx\":{\"ge\":1}}"},
        {&run_schema, "{\"code\": \"x\", \"timeout_ms\": \"5\"}",
         "{\"type\":\"int_type\",\"loc\":[\"body\",\"timeout_ms\"],"
         "\"msg\":\"Input should be a valid integer\",\"input\":\"5\"}"},
        {&run_schema, "[1]",
         "{\"type\":\"model_attributes_type\",\"loc\":[\"body\"],\"msg\":\"" MODEL
         "\",\"input\":[1]}"},
        {&run_schema, "{\"code\": \"x\", \"files\": [{\"path\": \"a\"}]}",
         "{\"type\":\"missing\",\"loc\":[\"body\",\"files\",0,\"file_id\"],"
         "\"msg\":\"Field required\",\"input\":{\"path\":\"a\"}}"},
        {&run_schema, "{\"code\": \"x\", \"files\": {}}",
         "{\"type\":\"list_type\",\"loc\":[\"body\",\"files\"],"
         "\"msg\":\"Input should be a valid list\",\"input\":{}}"},
        {&run_schema, "{\"code\": 1, \"timeout_ms\": \"z\", \"files\": 5}",
         "{\"type\":\"string_type\",\"loc\":[\"body\",\"code\"],"
         "\"msg\":\"Input should be a valid string\",\"input\":1},"
         "{\"type\":\"int_type\",\"loc\":[\"body\",\"timeout_ms\"],"
         "\"msg\":\"Input should be a valid integer\",\"input\":\"z\"},"
         "{\"type\":\"list_type\",\"loc\":[\"body\",\"files\"],"
         "\"msg\":\"Input should be a valid list\",\"input\":5}"},
        {&run_schema, "{code: 1}",
         "{\"type\":\"json_invalid\",\"loc\":[\"body\",1],\"msg\":\"JSON decode "
         "error\",\"input\":{},"
         "\"ctx\":{\"error\":\"Expecting property name enclosed in double quotes\"}}"},
        {&run_schema, "",
         "{\"type\":\"missing\",\"loc\":[\"body\"],\"msg\":\"Field required\",\"input\":null}"},
        {&session_schema, "{\"ttl_seconds\": 0}",
         "{\"type\":\"greater_than_equal\",\"loc\":[\"body\",\"ttl_seconds\"],"
         "\"msg\":\"Input should be greater than or equal to 1\",\"input\":0,\"ctx\":{\"ge\":1}}"},
        {&session_schema, "{\"ttl_seconds\": 86401}",
         "{\"type\":\"less_than_equal\",\"loc\":[\"body\",\"ttl_seconds\"],"
         "\"msg\":\"Input should be less than or equal to 86400\",\"input\":86401,"
         "\"ctx\":{\"le\":86400}}"},
        {&run_schema, "{\"code\": \"x\", \"timeout_ms\": 60001}", NULL}, /* another's to refuse */
        {&run_schema, "{\"code\":\"\",\"stdin\":null,\"unknown\":[]}", NULL},
        {&session_schema, "{}", NULL},
    };
    EXPECT_ALL(cases);
}

#define INT_FAULT(input)                                                                           \
    "{\"type\":\"int_type\",\"loc\":[\"body\",\"timeout_ms\"],"                                    \
    "\"msg\":\"Input should be a valid integer\",\"input\":" input "}"

static void integers_are_strict(void **state) {
    (void)state;
    static const struct body_case cases[] = {
        {&run_schema, "{\"code\":\"\",\"timeout_ms\":5.0}", INT_FAULT("5.0")},
        {&run_schema, "{\"code\":\"\",\"timeout_ms\":true}", INT_FAULT("true")},
        {&run_schema, "{\"code\":\"\",\"timeout_ms\":null}", INT_FAULT("null")},
        {&run_schema, "{\"code\":\"\",\"timeout_ms\":0.1}", INT_FAULT("0.1")},
        {&run_schema, "{\"code\":\"\",\"timeout_ms\":9223372036854775807}", NULL},
        {&all_schema, "{\"i\":null}", NULL},
        {&all_schema, "{\"i\":-9223372036854775808}", NULL},
    };
    EXPECT_ALL(cases);
}

#define REAL_FAULT(input)                                                                          \
    "{\"type\":\"float_type\",\"loc\":[\"body\",\"r\"],"                                           \
    "\"msg\":\"Input should be a valid number\",\"input\":" input "}"

static void reals_may_be_whole_and_their_bounds_are_reals(void **state) {
    (void)state;
    static const struct body_case cases[] = {
        {&all_schema, "{\"r\":1}", NULL},
        {&all_schema, "{\"r\":2.0}", NULL},
        {&all_schema, "{\"r\":true}", REAL_FAULT("true")},
        {&all_schema, "{\"r\":\"1\"}", REAL_FAULT("\"1\"")},
        {&all_schema, "{\"r\":null}", REAL_FAULT("null")},
        {&all_schema, "{\"r\":0}",
         "{\"type\":\"greater_than_equal\",\"loc\":[\"body\",\"r\"],"
         "\"msg\":\"Input should be greater than or equal to "
         "1\",\"input\":0,\"ctx\":{\"ge\":1.0}}"},
        {&all_schema, "{\"r\":2.5}",
         "{\"type\":\"less_than_equal\",\"loc\":[\"body\",\"r\"],"
         "\"msg\":\"Input should be less than or equal to 2\",\"input\":2.5,\"ctx\":{\"le\":2.0}}"},
    };
    EXPECT_ALL(cases);
}

static void booleans_are_lax(void **state) {
    (void)state;
    static const char *const taken[2][10] = {
        {"false", "0", "0.0", "\"0\"", "\"off\"", "\"F\"", "\"False\"", "\"n\"", "\"NO\"", "-0"},
        {"true", "1", "1.0", "\"1\"", "\"On\"", "\"t\"", "\"TRUE\"", "\"y\"", "\"Yes\"", "1e0"}};
    static const char *const parsing[] = {"\"maybe\"", "\"\"", "\" yes\"", "2", "-1", "2.0"};
    static const char *const type[] = {"1.5", "1e+300", "[]", "{}", "null"};
    for (int meaning = 0; meaning < 2; meaning++)
        for (int i = 0; i < 10; i++) {
            AUTO_BUF body = BUF_INIT;
            buf_addf(&body, "{\"b\":%s}", taken[meaning][i]);
            AUTO_OUTCOME o = read_text(&all_schema, body.data);
            assert_int_equal(o.rc, 0);
            assert_int_equal(field_bool(o.root, "b", !meaning), meaning);
        }
    for (size_t i = 0; i < 6 + 5; i++) {
        const char *input = i < 6 ? parsing[i] : type[i - 6];
        AUTO_BUF body = BUF_INIT;
        AUTO_BUF fault = BUF_INIT;
        buf_addf(&body, "{\"b\":%s}", input);
        buf_addf(&fault,
                 "{\"type\":\"bool_%s\",\"loc\":[\"body\",\"b\"],\"msg\":\"%s\",\"input\":%s}",
                 i < 6 ? "parsing" : "type",
                 i < 6 ? "Input should be a valid boolean, unable to interpret input"
                       : "Input should be a valid boolean",
                 input);
        expect(&all_schema, body.data, fault.data);
    }
}

static const char *is_not_x(const json_t *v) {
    return strcmp(json_string_value(v), "x") == 0 ? NULL : "It is no x";
}

static const struct field lax_fields[] = {
    {.name = "n", .type = FIELD_INT, .flags = FIELD_LAX | FIELD_MAX, .max = 300},
    {.name = "x", .type = FIELD_STRING, .wrong = is_not_x},
};
static const struct schema lax_schema = {
    .name = "Lax", .fields = lax_fields, .n = 2, .untyped = true};

static void integers_may_be_lax(void **state) {
    (void)state;
    static const struct {
        const char *json, *fault; /* NULL: taken */
        int64_t meaning;
    } cases[] = {
        {"5", NULL, 5},
        {"-5.0", NULL, -5},
        {"true", NULL, 1},
        {"\" 10 \"", NULL, 10},
        {"\"+10.00\"", NULL, 10},
        {"1.5", "int_from_float", 0},
        {"\"1.5\"", "int_parsing", 0},
        {"\"1.\"", "int_parsing", 0},
        {"\"1e2\"", "int_parsing", 0},
        {"\"0x10\"", "int_parsing", 0},
        {"\"\"", "int_parsing", 0},
        {"\"inf\"", "int_parsing", 0},
        {"[]", "int_type", 0},
        {"null", "int_type", 0},
        {"301", "less_than_equal", 0},
        {"1e+300", "less_than_equal", 0},
        {"\"99999999999999999999999\"", "less_than_equal", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF body = BUF_INIT;
        buf_addf(&body, "{\"n\":%s}", cases[i].json);
        AUTO_OUTCOME o = read_text(&lax_schema, body.data);
        assert_int_equal(o.rc, cases[i].fault ? -1 : 0);
        if (cases[i].fault)
            assert_non_null(strstr(o.reply.data, cases[i].fault));
        else
            assert_int_equal(field_int_lax(o.root, "n", 7), cases[i].meaning);
    }
    assert_int_equal(field_int_lax(NULL, "n", 7), 7);
}

static void a_table_may_judge_strings_itself(void **state) {
    (void)state;
    static const struct body_case cases[] = {
        {&lax_schema, "{\"x\":\"x\"}", NULL},
        {&lax_schema, "{\"x\":\"y\"}",
         "{\"type\":\"value_error\",\"loc\":[\"body\",\"x\"],\"msg\":\"Value error, It is no x\","
         "\"input\":\"y\",\"ctx\":{\"error\":{}}}"},
    };
    EXPECT_ALL(cases);
}

static void lists_and_maps_are_counted_before_their_items(void **state) {
    (void)state;
    static const struct body_case cases[] = {
        {&all_schema, "{\"l\":[\"a\",\"b\"],\"m\":{\"k\":\"v\"}}", NULL},
        {&all_schema, "{\"l\":[]}",
         "{\"type\":\"too_short\",\"loc\":[\"body\",\"l\"],"
         "\"msg\":\"List should have at least 1 item after validation, not 0\",\"input\":[],"
         "\"ctx\":{\"field_type\":\"List\",\"min_length\":1,\"actual_length\":0}}"},
        {&all_schema, "{\"l\":[\"a\",1,\"c\"]}",
         "{\"type\":\"too_long\",\"loc\":[\"body\",\"l\"],"
         "\"msg\":\"List should have at most 2 items after validation, not 3\","
         "\"input\":[\"a\",1,\"c\"],"
         "\"ctx\":{\"field_type\":\"List\",\"max_length\":2,\"actual_length\":3}}"},
        {&all_schema, "{\"l\":[\"a\",1]}",
         "{\"type\":\"string_type\",\"loc\":[\"body\",\"l\",1],"
         "\"msg\":\"Input should be a valid string\",\"input\":1}"},
        {&all_schema, "{\"m\":3}",
         "{\"type\":\"dict_type\",\"loc\":[\"body\",\"m\"],"
         "\"msg\":\"Input should be a valid dictionary\",\"input\":3}"},
        {&all_schema, "{\"m\":{\"a\":1}}",
         "{\"type\":\"string_type\",\"loc\":[\"body\",\"m\",\"a\"],"
         "\"msg\":\"Input should be a valid string\",\"input\":1}"},
        {&all_schema, "{\"m\":{\"a\":\"1\",\"b\":\"2\"}}",
         "{\"type\":\"too_long\",\"loc\":[\"body\",\"m\"],"
         "\"msg\":\"Dictionary should have at most 1 item after validation, not 2\","
         "\"input\":{\"a\":\"1\",\"b\":\"2\"},"
         "\"ctx\":{\"field_type\":\"Dictionary\",\"max_length\":1,\"actual_length\":2}}"},
    };
    EXPECT_ALL(cases);
}

#define WORD_FAULT(loc, expected, input)                                                           \
    "{\"type\":\"literal_error\",\"loc\":[\"body\"," loc "],\"msg\":\"Input should be " expected   \
    "\",\"input\":" input ",\"ctx\":{\"expected\":\"" expected "\"}}"

static void words_are_listed_whatever_came_instead(void **state) {
    (void)state;
    static const struct body_case cases[] = {
        {&all_schema, "{\"w\":\"c\",\"w2\":null,\"lw\":[\"a\",\"a\"]}", NULL},
        {&all_schema, "{\"w\":\"z\"}", WORD_FAULT("\"w\"", "'a', 'b' or 'c'", "\"z\"")},
        {&all_schema, "{\"w\":1}", WORD_FAULT("\"w\"", "'a', 'b' or 'c'", "1")},
        {&all_schema, "{\"w\":null}", WORD_FAULT("\"w\"", "'a', 'b' or 'c'", "null")},
        {&all_schema, "{\"w2\":\"c\"}", WORD_FAULT("\"w2\"", "'a' or 'b'", "\"c\"")},
        {&all_schema, "{\"lw\":[\"b\"]}", WORD_FAULT("\"lw\",0", "'a'", "\"b\"")},
    };
    EXPECT_ALL(cases);
}

static void objects_are_checked_inside_and_unknown_fields_come_last(void **state) {
    (void)state;
    static const struct body_case cases[] = {
        {&all_schema, "{\"o\":{\"p\":\"\"},\"any\":{\"x\":[1]}}", NULL},
        {&all_schema, "{\"o\":null}", NULL},
        {&all_schema, "{\"o\":3}",
         "{\"type\":\"model_attributes_type\",\"loc\":[\"body\",\"o\"],\"msg\":\"" MODEL
         "\",\"input\":3}"},
        {&all_schema, "{\"any\":\"\"}",
         "{\"type\":\"model_attributes_type\",\"loc\":[\"body\",\"any\"],\"msg\":\"" MODEL
         "\",\"input\":\"\"}"},
        {&all_schema, "{\"o\":{\"x\":1,\"y\":2}}",
         "{\"type\":\"missing\",\"loc\":[\"body\",\"o\",\"p\"],\"msg\":\"Field required\","
         "\"input\":{\"x\":1,\"y\":2}},"
         "{\"type\":\"extra_forbidden\",\"loc\":[\"body\",\"o\",\"x\"],"
         "\"msg\":\"Extra inputs are not permitted\",\"input\":1},"
         "{\"type\":\"extra_forbidden\",\"loc\":[\"body\",\"o\",\"y\"],"
         "\"msg\":\"Extra inputs are not permitted\",\"input\":2}"},
        {&all_schema, "\"text\"",
         "{\"type\":\"model_attributes_type\",\"loc\":[\"body\"],\"msg\":\"" MODEL
         "\",\"input\":\"text\"}"},
        {&all_schema, " null ",
         "{\"type\":\"missing\",\"loc\":[\"body\"],\"msg\":\"Field required\",\"input\":null}"},
    };
    EXPECT_ALL(cases);
}

static void a_field_may_stand_in_for_a_required_one(void **state) {
    (void)state;
    static const struct body_case cases[] = {
        {&either_schema, "{\"id\":\"x\"}", NULL},
        {&either_schema, "{\"content\":\"\"}", NULL},
        {&either_schema, "{}",
         "{\"type\":\"missing\",\"loc\":[\"body\",\"id\"],\"msg\":\"Field "
         "required\",\"input\":{}}"},
        {&either_schema, "{\"content\":null}",
         "{\"type\":\"string_type\",\"loc\":[\"body\",\"content\"],"
         "\"msg\":\"Input should be a valid string\",\"input\":null}"},
    };
    EXPECT_ALL(cases);
}

static void absent_and_null_fields_have_their_fallback(void **state) {
    (void)state;
    AUTO_OUTCOME o = read_text(&run_schema, "{\"code\":\"c\",\"stdin\":null,\"timeout_ms\":7,"
                                            "\"last_line_interactive\":\"no\"}");
    assert_int_equal(o.rc, 0);
    assert_string_equal(field_str(o.root, "code", "-"), "c");
    assert_string_equal(field_str(o.root, "stdin", "-"), "-");
    assert_null(field_str(o.root, "absent", NULL));
    assert_int_equal(field_int(o.root, "timeout_ms", 1), 7);
    assert_int_equal(field_int(o.root, "absent", -1), -1);
    assert_false(field_bool(o.root, "last_line_interactive", true));
    assert_true(field_bool(o.root, "absent", true));
    assert_true(field_bool(o.root, "stdin", true));
}

static void what_is_not_known_is_dropped(void **state) {
    (void)state;
    AUTO_BUF text = BUF_INIT, told = BUF_INIT;
    buf_adds(&text, "{\"code\":\"c\",\"files\":[{\"path\":\"p\",\"file_id\":\"f\",\"odd\":[1]}]");
    for (int i = 0; i < 50; i++)
        buf_addf(&text, ",\"odd%d\":[{},{}]", i);
    buf_adds(&text, "}");
    AUTO_OUTCOME o = read_text(&run_schema, text.data);
    assert_int_equal(o.rc, 0);
    fields_drop_unknown(&run_schema, o.root);
    assert_int_equal(json_object_size(o.root), 2 + 21);
    assert_true(json_is_null(json_object_get(o.root, "odd0")));
    const json_t *file = json_array_get(json_object_get(o.root, "files"), 0);
    assert_string_equal(field_str(file, "file_id", "-"), "f");
    assert_true(json_is_null(json_object_get(file, "odd")));
    fields_unknown(&run_schema, o.root, &told);
    assert_non_null(strstr(told.data, "odd19"));
    assert_non_null(strstr(told.data, "more fields that are not known were ignored"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_told_as_pydantic_tells_them),
        cmocka_unit_test(integers_are_strict),
        cmocka_unit_test(reals_may_be_whole_and_their_bounds_are_reals),
        cmocka_unit_test(booleans_are_lax),
        cmocka_unit_test(integers_may_be_lax),
        cmocka_unit_test(a_table_may_judge_strings_itself),
        cmocka_unit_test(lists_and_maps_are_counted_before_their_items),
        cmocka_unit_test(words_are_listed_whatever_came_instead),
        cmocka_unit_test(objects_are_checked_inside_and_unknown_fields_come_last),
        cmocka_unit_test(a_field_may_stand_in_for_a_required_one),
        cmocka_unit_test(absent_and_null_fields_have_their_fallback),
        cmocka_unit_test(what_is_not_known_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
