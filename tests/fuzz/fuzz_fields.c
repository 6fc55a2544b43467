/* Any bytes as a request body: it is either refused with a reply that is JSON, or taken, and then
 * it holds what its schema says. */

#include "http/fields.h"

#include "http/fields_read.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REPLY_MAX (2u << 20) /* 100 faults, each with bounded text that escapes make longer */

static const char *const words[] = {"a", "b", "c", NULL};
static const struct field item_fields[] = {
    {.name = "path", .type = FIELD_STRING, .flags = FIELD_REQUIRED},
    {.name = "size", .type = FIELD_INT},
};
static const struct schema item = {"Item", item_fields, 2, false};
static const struct field fields[] = {
    {.name = "s", .type = FIELD_STRING, .flags = FIELD_REQUIRED},
    {.name = "i", .type = FIELD_INT, .flags = FIELD_MIN | FIELD_MAX, .min = 1, .max = 9},
    {.name = "r", .type = FIELD_REAL, .flags = FIELD_MIN | FIELD_MAX, .min = 1, .max = 9},
    {.name = "b", .type = FIELD_BOOL, .flags = FIELD_NULLABLE},
    {.name = "w", .type = FIELD_STRING, .words = words},
    {.name = "l", .type = FIELD_LIST, .flags = FIELD_MIN | FIELD_MAX, .min = 1, .max = 3},
    {.name = "f", .type = FIELD_LIST, .of = &item},
    {.name = "o", .type = FIELD_OBJECT, .of = &item},
    {.name = "m", .type = FIELD_MAP, .flags = FIELD_MAX, .max = 3},
};
static const struct schema body = {"Body", fields, sizeof fields / sizeof fields[0], false};

static void must(bool holds) {
    if (!holds)
        abort();
}

static void check_refused(int status, const struct buf *reply) {
    /* A body that is no JSON is quoted as a string, and may hold NULs. */
    json_auto_t *root =
        json_loadb(reply->data, reply->len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    must(root != NULL);
    must(status == 422 || status == 400);
    must(reply->len <= REPLY_MAX);
    const json_t *detail = json_object_get(root, "detail");
    must(status == 400 ? json_is_string(detail) : json_array_size(detail) > 0);
    must(json_array_size(detail) <= FIELDS_FAULTS_MAX);
}

static void check_taken(const json_t *root) {
    must(field_str(root, "s", NULL) != NULL);
    int64_t i = field_int(root, "i", 1);
    must(i >= 1 && i <= 9);
    must(field_bool(root, "b", true) || !field_bool(root, "b", false));
    for (size_t k = 0; k < json_array_size(json_object_get(root, "f")); k++)
        must(field_str(json_array_get(json_object_get(root, "f"), k), "path", NULL) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const types[] = {"application/json", "text/plain"};
    for (int i = 0; i < 2; i++) {
        AUTO_BUF reply = BUF_INIT;
        json_auto_t *root = NULL;
        int status = 0;
        if (fields_read(&body, types[i], (const char *)data, size, &root, &status, &reply) == 0)
            check_taken(root);
        else
            check_refused(status, &reply);
    }
    return 0;
}
