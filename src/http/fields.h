#pragma once
/* What a request body may hold, as tables: one `struct schema` per body. Validation, the 422 reply
 * and the specification (openapi.h) all come from the same table. The replies are those that
 * FastAPI and pydantic v2 give, because clients of the Code Interpreter API read them. */

#include "base/buf.h"
#include "base/json.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum field_type {
    FIELD_STRING,
    FIELD_INT, /* strict: not "5", not 5.0, not true */
    FIELD_REAL,
    FIELD_BOOL, /* lax as pydantic: also 1 0 "yes" "no" "on" "off" "true" "false" "t" "f" "y" "n" */
    FIELD_LIST,
    FIELD_OBJECT,
    FIELD_MAP, /* an object of strings to strings */
    FIELD_ANY, /* whatever: its handler checks it */
};

enum field_flag {
    FIELD_REQUIRED = 1,
    FIELD_NULLABLE = 2,
    FIELD_MIN = 4,
    FIELD_MAX = 8,
    FIELD_OR_INT = 16, /* of FIELD_STRING, which may then be an integer as well */
    FIELD_LAX = 32,    /* of FIELD_INT: also "5", 5.0 and true */
    FIELD_FILE = 64,   /* of FIELD_STRING: a file in a form, for the specification only */
    FIELD_LONG = 128,  /* as long as a body may be: see FIELDS_TEXT_MAX */
};

struct schema;

struct field {
    const char *name;
    enum field_type type;
    unsigned flags;
    /* Obeyed with FIELD_MIN and FIELD_MAX: the value of FIELD_INT and FIELD_REAL, the number of
     * items of FIELD_LIST and FIELD_MAP. FIELD_MAX of FIELD_STRING and FIELD_OBJECT is for
     * bytes, instead of those below. */
    int64_t min, max;
    const char *fallback; /* JSON text, for the specification only, or NULL */
    /* Allowed strings, also as items of a list, NULL-terminated; or NULL. */
    const char *const *words;
    /* Of an object (NULL: any object), or of a list's items (NULL: strings). */
    const struct schema *of;
    const char *help; /* or NULL */
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
};

/* SECURITY: handlers work on their fields in the server's loop, and whole bodies may be large. So a
 * text has at most so many bytes unless its field is FIELD_LONG, which is for those that nobody
 * reads through there; and a map, a list or any other JSON has so many in all, where each value
 * counts 16 besides. */
#define FIELDS_TEXT_MAX   65536
#define FIELDS_JSON_MAX   (1u << 20)
#define FIELDS_VALUES_MAX 500000 /* in one body; a batch of 10,000 items has a tenth of that */
#define FIELDS_FAULTS_MAX 100    /* no more are looked for */
#define FIELDS_INPUT_MAX  1000   /* bytes of an offending value that are quoted back */

/* The number of faults; each is written as an object in FastAPI's shape into the array that
 * `errors` has open, in the order of the fields. The depth of `body` must be bounded, as it is
 * after fields_read and json_read. */
unsigned fields_check(const struct schema *s, const json_t *body, struct jw *errors);

/* Of a table that is open: a line for each field that it does not have. */
void fields_unknown(const struct schema *s, const json_t *body, struct buf *to);

/* Of a body that was checked: takes out what its table and those within it do not have, but for the
 * names that fields_unknown tells, whose values become null. */
void fields_drop_unknown(const struct schema *s, json_t *body);

/* The array of faults in a 422 reply: {"detail": [...]}. The end returns -1. */
struct jw fields_detail_begin(struct buf *reply);
int fields_detail_end(struct jw *j);

/* The whole reply for a number that is above a bound that is no table's. */
void fields_too_high(const json_t *body, const char *name, int64_t most, struct buf *reply);

/* Of a body that was checked; the fallback when the field is absent or null. */
bool field_bool(const json_t *body, const char *name, bool fallback);
int64_t field_int(const json_t *body, const char *name, int64_t fallback);
int64_t field_int_lax(const json_t *body, const char *name, int64_t fallback); /* of FIELD_LAX */
/* Lives as long as the body. */
const char *field_str(const json_t *body, const char *name, const char *fallback);
