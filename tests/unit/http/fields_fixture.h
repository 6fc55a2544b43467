#pragma once
/* Tables of fields for tests, and what comes of a body that is read with one. */

#include "http/fields.h"

/* The requests of POST /v1/execute and /v1/sessions, one with every type, and one of which one of
 * two fields must be there. */
extern const struct schema run_schema, session_schema, all_schema, either_schema;

/* What fields_read made of a body. */
struct outcome {
    int rc, status;
    json_t *root;
    struct buf reply;
};

void outcome_done(struct outcome *o);
#define AUTO_OUTCOME __attribute__((cleanup(outcome_done))) struct outcome

struct outcome read_bytes(const struct schema *s, const char *type, const char *text, size_t len);
struct outcome read_text(const struct schema *s, const char *text);
#define MODEL "Input should be a valid dictionary or object to extract fields from"
/* `detail` is the inside of the array; NULL: the body is taken. */
void expect(const struct schema *s, const char *text, const char *detail);

struct body_case {
    const struct schema *schema;
    const char *body, *detail;
};

void expect_all(const struct body_case *cases, size_t n);
#define EXPECT_ALL(cases) expect_all((cases), sizeof(cases) / sizeof((cases)[0]))
