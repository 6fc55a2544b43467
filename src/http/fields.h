#pragma once
/* Request bodies against their tables (base/schema.h): one `struct schema` per body. Validation,
 * the 422 reply and the specification (openapi.h) all come from the same table. The replies are
 * those that FastAPI and pydantic v2 give, because clients of the Code Interpreter API read them.
 */

#include "base/buf.h"
#include "base/json.h"
#include "base/schema.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* SECURITY: handlers work on their fields in the server's loop, and whole bodies may be large. So a
 * text has at most so many bytes unless its field is FIELD_LONG, which is for those that nobody
 * reads through there; and a map, a list or any other JSON has so many in all, where each value
 * counts 16 besides. */
#define FIELDS_TEXT_MAX   65536
#define FIELDS_JSON_MAX   (1u << 20)
#define FIELDS_VALUES_MAX 500000 /* in one body; a batch of 10,000 items has a tenth of that */
#define FIELDS_FAULTS_MAX 100    /* faults; no more are looked for */
#define FIELDS_INPUT_MAX  1000   /* bytes of an offending value that are quoted back */

/* The number of faults; each is written as an object in FastAPI's shape into the array that
 * `errors` has open, in the order of the fields. The depth of `body` must be bounded, as it is
 * after fields_read and json_read. */
unsigned fields_check(const struct schema *s, const json_t *body, struct jw *errors);

/* For an open table: adds a line for each field that the table does not have. */
void fields_unknown(const struct schema *s, const json_t *body, struct buf *to);

/* Of a body that was checked: takes out what its table and those within it do not have, but for the
 * names that fields_unknown tells, whose values become null. */
void fields_drop_unknown(const struct schema *s, json_t *body);

/* The array of faults in a 422 reply: {"detail": [...]}. The end returns -1. */
struct jw fields_detail_begin(struct buf *reply);
int fields_detail_end(struct jw *j);

/* The whole reply for a number above a bound that stands in no table. */
void fields_too_high(const json_t *body, const char *name, int64_t most, struct buf *reply);

/* From a checked body; the fallback when the field is absent or null. */
bool field_bool(const json_t *body, const char *name, bool fallback);
int64_t field_int(const json_t *body, const char *name, int64_t fallback);
int64_t field_int_lax(const json_t *body, const char *name, int64_t fallback); /* of FIELD_LAX */
/* Lives as long as the body. */
const char *field_str(const json_t *body, const char *name, const char *fallback);
