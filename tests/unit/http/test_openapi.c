/* http/openapi: the specification says what the tables say. */

#include "http/openapi.h"

#include "http/openapi_schema.h"

#include "fields_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct field made_fields[] = {
    HAS("id", FIELD_STRING),
    HAS_OR_NULL("n", FIELD_INT),
    MAY_HAVE("any", FIELD_JSON),
};
static const struct schema made_schema = {SCHEMA("Made", made_fields), .help = "a thing"};
static const struct field more_fields[] = {HAS("more", MAP_OF(FIELD_JSON), .help = "by name")};
static const struct schema more_schema = {SCHEMA("More", more_fields), .with = &made_schema};
static const struct schema things_schema = {SCHEMA_OF_LIST("Things", made_schema)};
static const struct schema one_event = {EVENT("OneEvent", "one", made_schema)};
static const struct schema events_schema = {"Events", ONE_OF(&one_event, &more_schema)};

static const struct field failure_fields[] = {
    {.name = "code", .flags = FIELD_REQUIRED | FIELD_CODE},
};
static const struct schema failure_schema = {SCHEMA("Failure", failure_fields)};
static const struct api_code codes[] = {
    {"no_thing", 404, "make one", false}, {"late", 503, "wait", true}, {"full", 503, "wait", true}};
static const struct api_reply forms[] = {
    {202, "soon", "application/json", &made_schema}, {304, "as before", NULL, NULL}, {0}};

static const struct api_doc thing_docs[] = {
    {"GET", "/things", "List", "x", NULL, NULL, 200, "them", "application/json",
     .gives = &things_schema, .refusal = &failure_schema, .refusals = codes, .nrefusals = 3},
    {"GET", "/things/{path...}", "One", "x", NULL, NULL, 200, "it", "application/json",
     .gives = &more_schema, .events = &events_schema, .more = forms, .refusal = &failure_schema,
     .refusals = codes, .nrefusals = 3},
    {"GET", "/talk", "Talk", "y", NULL, NULL, 101, "a WebSocket", NULL, .takes = &made_schema,
     .sends = &events_schema, .refusal = &failure_schema, .refusals = codes + 1, .nrefusals = 2,
     .secret = "token", .replays = true},
};

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
    const struct api_spec spec = {
        .title = "Title", .version = "1.2", .docs = docs, .n = sizeof docs / sizeof docs[0]};
    openapi_write(&spec, &text);
    assert_int_equal(json_read(text.data, text.len, JSON_DEPTH_MAX, &root, &e), 0);
    return root;
}

static void a_path_is_one_item_whatever_the_order(void **state) {
    (void)state;
    json_auto_t *root = specification();
    expect_json(at(root, "openapi", (char *)NULL), "\"3.1.0\"");
    expect_json(at(root, "info", "title", (char *)NULL), "\"Title\"");
    expect_json(at(root, "info", "version", (char *)NULL), "\"1.2\"");
    assert_int_equal(json_object_size(at(root, "paths", (char *)NULL)), 6);
    expect_json(at(root, "paths", "/v1/files/{file_id}", (char *)NULL),
                "{\"get\":{\"tags\":[\"files\"],\"summary\":\"Download\","
                "\"operationId\":\"get_v1_files__file_id_\","
                "\"parameters\":[{\"name\":\"file_id\",\"in\":\"path\",\"required\":true,"
                "\"schema\":{\"type\":\"string\"}}],"
                "\"responses\":{\"200\":{\"description\":\"The bytes\","
                "\"content\":{\"application/octet-stream\":{\"schema\":"
                "{\"type\":\"string\",\"format\":\"binary\"}}}}}},"
                "\"delete\":{\"tags\":[\"files\"],\"summary\":\"Remove\","
                "\"operationId\":\"delete_v1_files__file_id_\","
                "\"parameters\":[{\"name\":\"file_id\",\"in\":\"path\",\"required\":true,"
                "\"schema\":{\"type\":\"string\"}}],"
                "\"responses\":{\"204\":{\"description\":\"Nothing\"}}}}");
    assert_int_equal(
        json_array_size(at(root, "paths", "/v1/{a}/x/{b}", "put", "parameters", (char *)NULL)), 2);
}

static void a_body_is_a_reference(void **state) {
    (void)state;
    json_auto_t *root = specification();
    const json_t *run = at(root, "paths", "/v1/execute", "post", (char *)NULL);
    expect_json(at(run, "requestBody", (char *)NULL),
                "{\"content\":{\"application/json\":{\"schema\":"
                "{\"$ref\":\"#/components/schemas/Run\"}}},\"required\":true}");
    at(root, "paths", "/v1/all", "post", "requestBody", "content", "multipart/form-data",
       (char *)NULL);
    /* And what `any` holds: JsonValue and those below it. */
    assert_int_equal(json_object_size(at(root, "components", "schemas", (char *)NULL)), 5 + 3);
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
        "\"lw\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"const\":\"a\"}},"
        "\"o\":{\"anyOf\":[{\"$ref\":\"#/components/schemas/Part\"},{\"type\":\"null\"}]},"
        "\"any\":{\"type\":\"object\",\"additionalProperties\":"
        "{\"$ref\":\"#/components/schemas/JsonValue\"}},"
        "\"i\":{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}},"
        "\"additionalProperties\":false}");
    assert_null(json_object_get(at(schemas, "Either", (char *)NULL), "required"));
}

static json_t *things(void) {
    static const struct api_tag tags[] = {{"y", "talk"}, {"unused", ""}, {"x", "things"}, {0}};
    const struct api_spec spec = {.title = "T",
                                  .version = "1",
                                  .docs = thing_docs,
                                  .n = sizeof thing_docs / sizeof *thing_docs,
                                  .tags = tags,
                                  .codes = codes,
                                  .ncodes = 3};
    AUTO_BUF text = BUF_INIT;
    struct err e;
    json_t *root = NULL;
    openapi_write(&spec, &text);
    assert_int_equal(json_read(text.data, text.len, JSON_DEPTH_MAX, &root, &e), 0);
    return root;
}

static void a_reply_has_its_schema(void **state) {
    (void)state;
    json_auto_t *root = things();
    const json_t *schemas = at(root, "components", "schemas", (char *)NULL);
    expect_json(
        at(schemas, "Made", (char *)NULL),
        "{\"title\":\"Made\",\"description\":\"a thing\",\"type\":\"object\",\"properties\":{"
        "\"id\":{\"type\":\"string\"},"
        "\"n\":{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]},"
        "\"any\":{\"$ref\":\"#/components/schemas/JsonValue\"}},"
        "\"required\":[\"id\",\"n\"],\"additionalProperties\":false}");
    expect_json(at(schemas, "More", "required", (char *)NULL), "[\"more\",\"id\",\"n\"]");
    expect_json(at(schemas, "More", "properties", "more", (char *)NULL),
                "{\"type\":\"object\",\"additionalProperties\":"
                "{\"$ref\":\"#/components/schemas/JsonValue\"},\"description\":\"by name\"}");
    expect_json(at(schemas, "Things", (char *)NULL),
                "{\"title\":\"Things\",\"type\":\"array\",\"items\":"
                "{\"$ref\":\"#/components/schemas/Made\"}}");
    expect_json(at(schemas, "Events", "oneOf", (char *)NULL),
                "[{\"$ref\":\"#/components/schemas/OneEvent\"},"
                "{\"$ref\":\"#/components/schemas/More\"}]");
    expect_json(at(schemas, "OneEvent", "properties", "event", (char *)NULL),
                "{\"type\":\"string\",\"const\":\"one\"}");
}

static void a_status_has_each_of_its_forms(void **state) {
    (void)state;
    json_auto_t *root = things();
    const json_t *all = at(root, "paths", "/things/{path}", "get", "responses", (char *)NULL);
    expect_json(
        at(all, "200", "content", (char *)NULL),
        "{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/More\"}},"
        "\"text/event-stream\":{\"schema\":{\"$ref\":\"#/components/schemas/Events\"}},"
        "\"application/x-ndjson\":{\"schema\":{\"$ref\":\"#/components/schemas/Events\"}}}");
    at(all, "202", "content", "application/json", (char *)NULL);
    expect_json(at(all, "304", (char *)NULL), "{\"description\":\"as before\"}");
}

static void errors_are_told_once_for_all_who_have_the_same(void **state) {
    (void)state;
    json_auto_t *root = things();
    const json_t *responses = at(root, "components", "responses", (char *)NULL);
    assert_int_equal(json_object_size(responses), 2);
    expect_json(at(root, "paths", "/talk", "get", "responses", "503", (char *)NULL),
                "{\"$ref\":\"#/components/responses/Failure503\"}");
    expect_json(
        at(responses, "Failure503", (char *)NULL),
        "{\"description\":\"`late`, `full`\",\"content\":{\"application/json\":{\"schema\":"
        "{\"allOf\":[{\"$ref\":\"#/components/schemas/Failure\"},"
        "{\"type\":\"object\",\"properties\":{\"error\":{\"type\":\"object\",\"properties\":"
        "{\"code\":{\"type\":\"string\",\"enum\":[\"late\",\"full\"]}}}}}]}}}}");
    expect_json(
        at(root, "components", "schemas", "Failure", "properties", "code", "enum", (char *)NULL),
        "[\"no_thing\",\"late\",\"full\"]");
    expect_json(at(root, "x-errors", "late", (char *)NULL),
                "{\"status\":503,\"remediation\":\"wait\",\"retryable\":true}");
}

static void a_websocket_names_its_messages(void **state) {
    (void)state;
    json_auto_t *root = things();
    const json_t *talk = at(root, "paths", "/talk", "get", (char *)NULL);
    expect_json(at(talk, "x-websocket", (char *)NULL),
                "{\"client\":{\"$ref\":\"#/components/schemas/Made\"},"
                "\"server\":{\"$ref\":\"#/components/schemas/Events\"}}");
    expect_json(at(talk, "security", (char *)NULL),
                "[{\"bearer\":[]},{\"key\":[]},{\"token\":[]},{}]");
    expect_json(at(root, "components", "securitySchemes", "token", "in", (char *)NULL),
                "\"query\"");
    assert_int_equal(json_array_size(at(talk, "parameters", (char *)NULL)), 1);
    expect_json(at(root, "tags", (char *)NULL), "[{\"name\":\"y\",\"description\":\"talk\"},"
                                                "{\"name\":\"x\",\"description\":\"things\"}]");
}

/* A table that refers to itself. */
static const struct schema tree_schema;
static const struct field tree_fields[] = {
    HAS("name", FIELD_STRING),
    MAY_HAVE("below", LIST_OF(tree_schema)),
    MAY_HAVE("made", OBJECT(made_schema)),
};
static const struct schema tree_schema = {SCHEMA("Tree", tree_fields)};

static void a_schema_alone_refers_to_nothing(void **state) {
    (void)state;
    AUTO_BUF text = BUF_INIT;
    struct jw j = JW_INIT(&text);
    struct err e;
    struct json_t *tree = NULL;
    schema_write_alone(&j, &tree_schema);
    assert_int_equal(json_read(text.data, text.len, JSON_DEPTH_MAX, &tree, &e), 0);
    assert_null(strstr(text.data, "$ref"));
    const json_t *properties = json_object_get(tree, "properties");
    const json_t *made = json_object_get(properties, "made");
    assert_non_null(json_object_get(json_object_get(made, "properties"), "id"));
    const json_t *below = json_object_get(json_object_get(properties, "below"), "items");
    assert_string_equal(json_string_value(json_object_get(below, "type")), "object");
    json_decref(tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_one_item_whatever_the_order),
        cmocka_unit_test(a_body_is_a_reference),
        cmocka_unit_test(schemas_say_what_the_tables_say),
        cmocka_unit_test(a_reply_has_its_schema),
        cmocka_unit_test(a_status_has_each_of_its_forms),
        cmocka_unit_test(errors_are_told_once_for_all_who_have_the_same),
        cmocka_unit_test(a_websocket_names_its_messages),
        cmocka_unit_test(a_schema_alone_refers_to_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
