#pragma once
/* A fault in a request's body: where it is and what is wrong, written as FastAPI writes it.
 * fields.c finds faults in values, fields_read.c in a body as a whole. */

#include "base/json.h"
#include "base/schema.h"

#include <jansson.h>
#include <stddef.h>

/* Where in the body a value lies; each level is on the stack of its check. */
struct field_loc {
    const struct field_loc *up; /* NULL: the body */
    const char *name;           /* NULL: an index */
    size_t index;
};
extern const struct field_loc field_loc_body;

struct field_fault {
    const char *type, *msg;
    const json_t *input;
    const char *ctx; /* a JSON object, or NULL */
};

/* The message for a value that should be an object. */
extern const char field_not_an_object[];

/* What field_fault_write writes. */
extern const struct schema field_fault_schema;
void field_fault_write(struct jw *j, const struct field_loc *at, const struct field_fault *f);
