#pragma once
/* What JSON holds, as tables: a `struct schema` for each object that comes in or goes out. They are
 * only data. http/fields.h checks requests against them, and http/openapi.h writes the
 * specification from them; the table of a reply stands beside the function that writes the reply.
 *
 *     static const struct field point_fields[] = {
 *         HAS("x", FIELD_INT),
 *         HAS_OR_NULL("label", FIELD_STRING, .help = "what stands beside it"),
 *         MAY_HAVE("far", FIELD_BOOL),
 *     };
 *     const struct schema point_schema = {SCHEMA("Point", point_fields)};
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum field_type {
    FIELD_STRING,
    FIELD_INT, /* strict: not "5", not 5.0, not true */
    FIELD_REAL,
    FIELD_BOOL, /* lax as pydantic: also 1 0 "yes" "no" "on" "off" "true" "false" "t" "f" "y" "n" */
    FIELD_LIST,
    FIELD_OBJECT,
    FIELD_MAP,  /* an object with names that nobody knows before */
    FIELD_ANY,  /* whatever its handler takes: `of` says what that is */
    FIELD_JSON, /* any JSON */
};

enum field_flag {
    FIELD_REQUIRED = 1,
    FIELD_NULLABLE = 2,
    FIELD_MIN = 4,
    FIELD_MAX = 8,
    FIELD_OR_INT = 16, /* of FIELD_STRING, which may then be an integer as well */
    FIELD_LAX = 32,    /* of FIELD_INT: also "5", 5.0 and true */
    FIELD_FILE = 64,   /* of FIELD_STRING: a file in a form, for the specification only */
    FIELD_LONG = 128,  /* as long as a body may be: see FIELDS_TEXT_MAX in http/fields.h */
    FIELD_CODE = 256,  /* of FIELD_STRING: its words are the codes of errors of the whole API */
};

struct schema;

struct field {
    const char *name;
    enum field_type type;
    unsigned flags;
    /* Obeyed with FIELD_MIN and FIELD_MAX: the value of FIELD_INT and FIELD_REAL, the number of
     * items of FIELD_LIST and FIELD_MAP. FIELD_MAX of FIELD_STRING and FIELD_OBJECT is for
     * bytes, instead of those that http/fields.h has for all. */
    int64_t min, max;
    const char *fallback; /* JSON text, for the specification only, or NULL */
    /* Allowed strings, also as items of a list, NULL-terminated; or NULL. */
    const char *const *words;
    /* Of an object (NULL: any object), or of the items of a list or map (NULL: see `items`). */
    const struct schema *of;
    enum field_type items; /* of a list or map without `of`; requests can have strings only */
    const char *help;      /* or NULL */
    const char *(*wrong)(
        const json_t *v); /* of a string: what is wrong with it, or NULL; or NULL */
    const char *unless;   /* FIELD_REQUIRED only when the field of this name is absent; or NULL */
};

struct schema {
    const char *name;
    const struct field *fields;
    unsigned n;
    bool open;      /* unknown fields are ignored; otherwise each is a fault */
    bool untyped;   /* a body without a Content-Type is taken for JSON */
    bool any_type;  /* any body is taken for JSON; none at all is an empty object */
    bool unchecked; /* of a list's items: any JSON; the handler checks each by itself */
    /* The rest is for the specification only. */
    const char *help;                   /* or NULL */
    const struct schema *with;          /* whose fields stand among ours; or NULL */
    const struct schema *const *one_of; /* instead of fields: one of these, NULL-terminated */
    const struct field *value;          /* instead of fields: this, which is no object */
};

#define SCHEMA(name_, array)                                                                       \
    .name = (name_), .fields = (array), .n = sizeof(array) / sizeof *(array)

/* Fields of replies: always there, there but maybe null, or not always there. What follows the name
 * is the type, and then whatever else the field has. */
#define HAS(name_, ...)                                                                            \
    { .name = (name_), .flags = FIELD_REQUIRED, .type = __VA_ARGS__ }
#define HAS_OR_NULL(name_, ...)                                                                    \
    { .name = (name_), .flags = FIELD_REQUIRED | FIELD_NULLABLE, .type = __VA_ARGS__ }
#define MAY_HAVE(name_, ...)                                                                       \
    { .name = (name_), .type = __VA_ARGS__ }
#define WORDS(...)                                                                                 \
    .words = (const char *const[]) {                                                               \
        __VA_ARGS__, NULL                                                                          \
    }
#define ONE_OF(...)                                                                                \
    .one_of = (const struct schema *const[]) {                                                     \
        __VA_ARGS__, NULL                                                                          \
    }
#define LIST_OF(schema_) FIELD_LIST, .of = &(schema_)
#define OBJECT(schema_)  FIELD_OBJECT, .of = &(schema_)
#define MAP_OF(type_)    FIELD_MAP, .items = (type_)

/* A list of objects as a whole reply. */
#define SCHEMA_OF_LIST(name_, schema_)                                                             \
    .name = (name_), .value = &(const struct field) {                                              \
        .type = FIELD_LIST, .of = &(schema_)                                                       \
    }

/* What a stream says: {"event", "data", "seq"} with the name `word`. `more` are flags of the
 * number: not every event has one. */
#define EVENT_WITH(name_, word, data_, more)                                                       \
    .name = (name_), .n = 3, .fields = (const struct field[]) {                                    \
        {.name = "event", .type = FIELD_STRING, .flags = FIELD_REQUIRED, WORDS(word)},             \
            {.name = "data", .type = FIELD_OBJECT, .flags = FIELD_REQUIRED, .of = &(data_)},       \
            {.name = "seq",                                                                        \
             .type = FIELD_INT,                                                                    \
             .flags = (more),                                                                      \
             .help = "its number; the field id of a server-sent event"},                           \
    }
#define EVENT(name_, word, data_) EVENT_WITH(name_, word, data_, FIELD_REQUIRED)

/* The same over a WebSocket: the members of the data stand in the message itself. `base` has what
 * else the messages of that connection have in common. */
#define MESSAGE_TYPE(word)                                                                         \
    { .name = "type", .type = FIELD_STRING, .flags = FIELD_REQUIRED, WORDS(word) }
