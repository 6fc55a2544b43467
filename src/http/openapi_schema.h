#pragma once
/* Tables of fields (base/schema.h) as JSON Schema, the way OpenAPI 3.1 has it. For the
 * specification's own files. */

#include "base/json.h"
#include "base/schema.h"

#include <stddef.h>

/* The tables that a specification uses, each once, in the order in which they are met. */
struct schemas {
    const struct schema **all; /* owned; what it points to is borrowed */
    size_t n;
    const char *const *codes; /* borrowed: the words of FIELD_CODE, NULL-terminated; or NULL */
    unsigned alone; /* not 0: there is no list; tables stand where they are used, so many deep */
};

/* Two with one name are one, of which the first is written. NULL is none. */
void schemas_add(struct schemas *list, const struct schema *s);
/* And those that its fields name. */
void schemas_add_fields(struct schemas *list, const struct schema *s);
/* Those that the ones in the list refer to. */
void schemas_complete(struct schemas *list);
void schemas_done(struct schemas *list);

/* A member for each, by its name. */
void schemas_write(struct jw *j, const struct schemas *list);
/* The inside of the schema of a field's value, null apart. */
void schema_write_type(struct jw *j, const struct schemas *list, const struct field *f);
void schema_write_default(struct jw *j, const struct field *f);
/* The member "$ref". */
void schema_write_ref(struct jw *j, const struct schema *s);
/* One table as a schema by itself: those within it stand in it, a few levels deep. */
void schema_write_alone(struct jw *j, const struct schema *s);
