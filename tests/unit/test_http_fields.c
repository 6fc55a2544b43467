/* http/fields and http/openapi: bodies are taken or refused as FastAPI and pydantic do it, and the
 * specification says the same. */

#include "http/fields.h"
#include "http/fields_read.h"
#include "http/openapi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct field file_fields[] = {
    {.name = "path", .type = FIELD_STRING, .flags = FIELD_REQUIRED},
    {.name = "file_id", .type = FIELD_STRING, .flags = FIELD_REQUIRED},
};
static const struct schema file_schema = {"File", file_fields, 2, true};

/* The request of POST /v1/execute. */
static const struct field run_fields[] = {
    {.name = "code", .type = FIELD_STRING, .flags = FIELD_REQUIRED, .help = "The program."},
    {.name = "stdin", .type = FIELD_STRING, .flags = FIELD_NULLABLE, .fallback = "null"},
    {.name = "timeout_ms", .type = FIELD_INT, .flags = FIELD_MIN, .min = 1, .fallback = "2000"},
    {.name = "last_line_interactive", .type = FIELD_BOOL, .fallback = "true"},
    {.name = "files", .type = FIELD_LIST, .of = &file_schema, .fallback = "[]"},
};
static const struct schema run_schema = {"Run", run_fields, 5, true};

/* The request of POST /v1/sessions. */
static const struct field session_fields[] = {
    {.name = "ttl_seconds",
     .type = FIELD_INT,
     .flags = FIELD_MIN | FIELD_MAX,
     .min = 1,
     .max = 86400},
};
static const struct schema session_schema = {"Session", session_fields, 1, true};

static const char *const words[] = {"a", "b", "c", NULL};
static const char *const two_words[] = {"a", "b", NULL};
static const char *const one_word[] = {"a", NULL};
static const struct field part_fields[] = {
    {.name = "p", .type = FIELD_STRING, .flags = FIELD_REQUIRED},
};
static const struct schema part_schema = {"Part", part_fields, 1, false};

/* Every type. */
static const struct field all_fields[] = {
    {.name = "r", .type = FIELD_REAL, .flags = FIELD_MIN | FIELD_MAX, .min = 1, .max = 2},
    {.name = "b", .type = FIELD_BOOL},
    {.name = "l", .type = FIELD_LIST, .flags = FIELD_MIN | FIELD_MAX, .min = 1, .max = 2},
    {.name = "m", .type = FIELD_MAP, .flags = FIELD_MAX, .max = 1},
    {.name = "w", .type = FIELD_STRING, .words = words},
    {.name = "w2", .type = FIELD_STRING, .flags = FIELD_NULLABLE, .words = two_words},
    {.name = "lw", .type = FIELD_LIST, .words = one_word},
    {.name = "o", .type = FIELD_OBJECT, .flags = FIELD_NULLABLE, .of = &part_schema},
    {.name = "any", .type = FIELD_OBJECT},
    {.name = "i", .type = FIELD_INT, .flags = FIELD_NULLABLE},
};
static const struct schema all_schema = {"All", all_fields, 10, false};

/* One of two fields must be there. */
static const struct field either_fields[] = {
    {.name = "id", .type = FIELD_STRING, .flags = FIELD_REQUIRED, .unless = "content"},
    {.name = "content", .type = FIELD_STRING},
};
static const struct schema either_schema = {"Either", either_fields, 2, false};

/* What fields_read made of a body. */
struct outcome {
    int rc, status;
    json_t *root;
    struct buf reply;
};

static void outcome_done(struct outcome *o) {
    json_decref(o->root);
    buf_done(&o->reply);
}

#define AUTO_OUTCOME __attribute__((cleanup(outcome_done))) struct outcome

static struct outcome read_bytes(const struct schema *s, const char *type, const char *text,
                                 size_t len) {
    struct outcome o = {.reply = BUF_INIT};
    o.rc = fields_read(s, type, text, len, &o.root, &o.status, &o.reply);
    assert_int_equal(o.rc == 0, o.root != NULL);
    assert_int_equal(o.rc == 0, o.reply.len == 0);
    return o;
}

static struct outcome read_text(const struct schema *s, const char *text) {
    return read_bytes(s, "application/json", text, strlen(text));
}

/* `detail` is the inside of the array; NULL: the body is taken. */
static void expect(const struct schema *s, const char *text, const char *detail) {
    AUTO_OUTCOME o = read_text(s, text);
    AUTO_BUF want = BUF_INIT;
    if (detail)
        buf_addf(&want, "{\"detail\":[%s]}", detail);
    if (strcmp(o.reply.data, want.data) != 0)
        print_message("body: %s\n", text);
    assert_string_equal(o.reply.data, want.data);
    assert_int_equal(o.rc, detail ? -1 : 0);
    assert_int_equal(o.status, 422);
}

struct body_case {
    const struct schema *schema;
    const char *body, *detail;
};

static void expect_all(const struct body_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++)
        expect(cases[i].schema, cases[i].body, cases[i].detail);
}

#define EXPECT_ALL(cases) expect_all((cases), sizeof(cases) / sizeof((cases)[0]))

#define MODEL "Input should be a valid dictionary or object to extract fields from"

static void faults_are_those_of_the_contract(void **state) {
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

static const struct api_doc docs[] = {
    {"GET", "/v1/files/{file_id}", "Download", "files", NULL, NULL, 200, "The bytes",
     "application/octet-stream"},
    {"POST", "/v1/execute", "Run a program", "run", &run_schema, NULL, 200, "What came of it",
     "application/json"},
    {"DELETE", "/v1/files/{file_id}", "Remove", "files", NULL, NULL, 204, "Nothing", NULL},
    {"PUT", "/v1/{a}/x/{b}", NULL, NULL, NULL, "application/octet-stream", 201, "Stored", NULL},
    {"POST", "/v1/all", "All", "run", &all_schema, "multipart/form-data", 200, "", NULL},
    {"POST", "/v1/execute/stream", "Run", "run", &run_schema, NULL, 200, "", "text/event-stream"},
    {"POST", "/v1/either", NULL, NULL, &either_schema, NULL, 200, "", NULL},
};

/* The value at a path of keys, each of which must be there; ends with NULL. */
static const json_t *at(const json_t *v, ...) {
    va_list ap;
    va_start(ap, v);
    for (const char *key = va_arg(ap, const char *); key; key = va_arg(ap, const char *)) {
        v = json_object_get(v, key);
        if (!v)
            print_message("no %s\n", key);
        assert_non_null(v);
    }
    va_end(ap);
    return v;
}

static void expect_json(const json_t *v, const char *text) {
    AUTO_BUF got = BUF_INIT;
    char *dumped = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
    buf_adds(&got, dumped);
    free(dumped);
    assert_string_equal(got.data, text);
}

static json_t *specification(void) {
    AUTO_BUF text = BUF_INIT;
    struct err e;
    json_t *root = NULL;
    openapi_write("Title", "1.2", docs, sizeof docs / sizeof docs[0], &text);
    assert_int_equal(json_read(text.data, text.len, JSON_DEPTH_MAX, &root, &e), 0);
    return root;
}

static void a_path_is_one_item_whatever_the_order(void **state) {
    (void)state;
    json_auto_t *root = specification();
    expect_json(at(root, "openapi", (char *)NULL), "\"3.1.0\"");
    expect_json(at(root, "info", (char *)NULL), "{\"title\":\"Title\",\"version\":\"1.2\"}");
    assert_int_equal(json_object_size(at(root, "paths", (char *)NULL)), 6);
    expect_json(at(root, "paths", "/v1/files/{file_id}", (char *)NULL),
                "{\"get\":{\"tags\":[\"files\"],\"summary\":\"Download\","
                "\"operationId\":\"get_v1_files__file_id_\","
                "\"parameters\":[{\"name\":\"file_id\",\"in\":\"path\",\"required\":true,"
                "\"schema\":{\"type\":\"string\"}}],"
                "\"responses\":{\"200\":{\"description\":\"The bytes\","
                "\"content\":{\"application/octet-stream\":{\"schema\":{}}}}}},"
                "\"delete\":{\"tags\":[\"files\"],\"summary\":\"Remove\","
                "\"operationId\":\"delete_v1_files__file_id_\","
                "\"parameters\":[{\"name\":\"file_id\",\"in\":\"path\",\"required\":true,"
                "\"schema\":{\"type\":\"string\"}}],"
                "\"responses\":{\"204\":{\"description\":\"Nothing\"}}}}");
    assert_int_equal(
        json_array_size(at(root, "paths", "/v1/{a}/x/{b}", "put", "parameters", (char *)NULL)), 2);
}

static void a_body_is_a_reference_and_has_a_422(void **state) {
    (void)state;
    json_auto_t *root = specification();
    const json_t *run = at(root, "paths", "/v1/execute", "post", (char *)NULL);
    expect_json(at(run, "requestBody", (char *)NULL),
                "{\"content\":{\"application/json\":{\"schema\":"
                "{\"$ref\":\"#/components/schemas/Run\"}}},\"required\":true}");
    expect_json(
        at(run, "responses", "422", (char *)NULL),
        "{\"description\":\"Validation Error\",\"content\":{\"application/json\":{\"schema\":"
        "{\"$ref\":\"#/components/schemas/HTTPValidationError\"}}}}");
    at(root, "paths", "/v1/all", "post", "requestBody", "content", "multipart/form-data",
       (char *)NULL);
    at(root, "components", "schemas", "ValidationError", (char *)NULL);
    assert_int_equal(json_object_size(at(root, "components", "schemas", (char *)NULL)), 5 + 2);
}

static void schemas_say_what_the_tables_say(void **state) {
    (void)state;
    json_auto_t *root = specification();
    const json_t *schemas = at(root, "components", "schemas", (char *)NULL);
    expect_json(
        at(schemas, "Run", (char *)NULL),
        "{\"title\":\"Run\",\"type\":\"object\",\"properties\":{"
        "\"code\":{\"type\":\"string\",\"description\":\"The program.\"},"
        "\"stdin\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}],\"default\":null},"
        "\"timeout_ms\":{\"type\":\"integer\",\"minimum\":1,\"default\":2000},"
        "\"last_line_interactive\":{\"type\":\"boolean\",\"default\":true},"
        "\"files\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/File\"},"
        "\"default\":[]}},\"required\":[\"code\"]}");
    expect_json(
        at(schemas, "All", (char *)NULL),
        "{\"title\":\"All\",\"type\":\"object\",\"properties\":{"
        "\"r\":{\"type\":\"number\",\"minimum\":1,\"maximum\":2},"
        "\"b\":{\"type\":\"boolean\"},"
        "\"l\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"minItems\":1,\"maxItems\":2},"
        "\"m\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"},"
        "\"maxProperties\":1},"
        "\"w\":{\"type\":\"string\",\"enum\":[\"a\",\"b\",\"c\"]},"
        "\"w2\":{\"anyOf\":[{\"type\":\"string\",\"enum\":[\"a\",\"b\"]},{\"type\":\"null\"}]},"
        "\"lw\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":[\"a\"]}},"
        "\"o\":{\"anyOf\":[{\"$ref\":\"#/components/schemas/Part\"},{\"type\":\"null\"}]},"
        "\"any\":{\"type\":\"object\"},"
        "\"i\":{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}},"
        "\"additionalProperties\":false}");
    assert_null(json_object_get(at(schemas, "Either", (char *)NULL), "required"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_those_of_the_contract),
        cmocka_unit_test(integers_are_strict),
        cmocka_unit_test(reals_may_be_whole_and_their_bounds_are_reals),
        cmocka_unit_test(booleans_are_lax),
        cmocka_unit_test(integers_may_be_lax),
        cmocka_unit_test(a_table_may_judge_strings_itself),
        cmocka_unit_test(lists_and_maps_are_counted_before_their_items),
        cmocka_unit_test(words_are_listed_whatever_came_instead),
        cmocka_unit_test(objects_are_checked_inside_and_unknown_fields_come_last),
        cmocka_unit_test(a_field_may_stand_in_for_a_required_one),
        cmocka_unit_test(only_json_content_types_are_read),
        cmocka_unit_test(what_is_not_utf8_is_refused),
        cmocka_unit_test(broken_json_has_the_words_and_the_place_of_cpython),
        cmocka_unit_test(what_python_takes_and_we_do_not_is_said_clearly),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(a_long_input_is_cut_at_a_character),
        cmocka_unit_test(an_input_of_exactly_the_bound_is_quoted_whole),
        cmocka_unit_test(there_are_at_most_a_hundred_faults),
        cmocka_unit_test(absent_and_null_fields_have_their_fallback),
        cmocka_unit_test(a_path_is_one_item_whatever_the_order),
        cmocka_unit_test(a_body_is_a_reference_and_has_a_422),
        cmocka_unit_test(schemas_say_what_the_tables_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
