#pragma once
/* The specification of an API, made from the same tables that check its requests. */

#include "base/buf.h"
#include "http/fields.h"

#include <stdbool.h>
#include <stddef.h>

/* One endpoint. All strings are borrowed. */
struct api_doc {
    const char *method, *path; /* "POST", "/v1/files/{file_id}": each {name} is a path parameter;
                                * a last {name...} is the rest of the path, slashes and all */
    const char *summary, *tag; /* or NULL */
    const struct schema *body; /* or NULL; then a body_type means bytes as they are */
    const char *body_type;     /* NULL: application/json */
    int status;
    const char *reply;      /* what comes back, in words */
    const char *reply_type; /* NULL: no content */
    /* Its fields are what the query may have, or NULL; one called PREFIX.NAME stands for all that
     * begin with the prefix. */
    const struct schema *query;
    bool is_open; /* needs no key */
    int also;     /* another status with the same reply, or 0 */
};

/* An OpenAPI 3.1 document. Schemas are known by their names; of two endpoints with the same method
 * and path the first is written. */
void openapi_write(const char *title, const char *version, const struct api_doc *docs, size_t n,
                   struct buf *to);
