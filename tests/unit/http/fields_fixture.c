/* See fields_fixture.h. */

#include "fields_fixture.h"

#include "http/fields_read.h"

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
const struct schema run_schema = {"Run", run_fields, 5, true};

/* The request of POST /v1/sessions. */
static const struct field session_fields[] = {
    {.name = "ttl_seconds",
     .type = FIELD_INT,
     .flags = FIELD_MIN | FIELD_MAX,
     .min = 1,
     .max = 86400},
};
const struct schema session_schema = {"Session", session_fields, 1, true};

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
const struct schema all_schema = {"All", all_fields, 10, false};

/* One of two fields must be there. */
static const struct field either_fields[] = {
    {.name = "id", .type = FIELD_STRING, .flags = FIELD_REQUIRED, .unless = "content"},
    {.name = "content", .type = FIELD_STRING},
};
const struct schema either_schema = {"Either", either_fields, 2, false};

void outcome_done(struct outcome *o) {
    json_decref(o->root);
    buf_done(&o->reply);
}

struct outcome read_bytes(const struct schema *s, const char *type, const char *text, size_t len) {
    struct outcome o = {.reply = BUF_INIT};
    o.rc = fields_read(s, type, text, len, &o.root, &o.status, &o.reply);
    assert_int_equal(o.rc == 0, o.root != NULL);
    assert_int_equal(o.rc == 0, o.reply.len == 0);
    return o;
}

struct outcome read_text(const struct schema *s, const char *text) {
    return read_bytes(s, "application/json", text, strlen(text));
}

void expect(const struct schema *s, const char *text, const char *detail) {
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

void expect_all(const struct body_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++)
        expect(cases[i].schema, cases[i].body, cases[i].detail);
}
