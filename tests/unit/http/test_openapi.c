/* http/openapi: the specification says what the tables say. */

#include "http/openapi.h"

#include "fields_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
        cmocka_unit_test(a_path_is_one_item_whatever_the_order),
        cmocka_unit_test(a_body_is_a_reference_and_has_a_422),
        cmocka_unit_test(schemas_say_what_the_tables_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
