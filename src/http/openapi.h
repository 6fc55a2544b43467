#pragma once
/* The specification of an API, made from the tables that check its requests and from those that
 * stand beside the writers of its replies (base/schema.h). */

#include "base/buf.h"
#include "http/fields.h"

#include <stdbool.h>
#include <stddef.h>

/* A kind of error: the word in `error.code`, and how it is told. */
struct api_code {
    const char *code;
    int status;
    const char *remediation;
    bool retryable;
};

/* A reply of another status than the usual one, or of another type. */
struct api_reply {
    int status;
    const char *words;
    const char *type;           /* NULL: no content */
    const struct schema *gives; /* NULL: text, or bytes */
};

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
    bool replays; /* takes an Idempotency-Key */
    bool passes;  /* the answer may be somebody else's: of any status, in whatever form */
    int also;     /* another status with the same reply, or 0 */
    const struct schema *gives; /* what the reply's JSON is; NULL: the reply is text, or bytes */
    /* With that status it may also be a stream, of which each event or line is one of these. */
    const struct schema *events;
    const struct api_reply *more; /* ends with status 0; or NULL */
    /* Of a WebSocket: what a message to the server may be, and what one from the server is. */
    const struct schema *takes, *sends;
    /* Words between spaces: the codes of the errors that it may be refused with, besides those that
     * every endpoint has; "507:disk_full" where the status is not the usual one. Or NULL. */
    const char *errors;
    /* All of them, sorted by status, for openapi_write; what their body is. */
    const struct api_code *refusals; /* borrowed */
    size_t nrefusals;
    const struct schema *refusal;
    const char *secret; /* the query parameter in which a key may be; or NULL */
};

struct api_tag {
    const char *name, *help;
};

struct api_spec {
    const char *title, *version;
    const struct api_doc *docs;
    size_t n;
    const struct api_tag
        *tags; /* in their order, ends with a name of NULL; those in use are told */
    const struct api_code *codes;
    size_t ncodes;
};

/* An OpenAPI 3.1 document. Schemas are known by their names; of two endpoints with the same method
 * and path the first is written. */
void openapi_write(const struct api_spec *s, struct buf *to);
