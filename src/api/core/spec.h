#pragma once
/* GET /openapi.json: the specification of the routes that there are, each with the errors that it
 * may be refused with. For api/ only. */

#include "base/schema.h"

struct call;
struct dialect;

/* Replies with the specification of one dialect's routes, or (NULL) of all. */
void spec_give(struct call *c, const struct dialect *only);
/* The handler of GET /openapi.json, for dialects that have another path for it. */
void spec_give_all(struct call *c);
/* What that is. */
extern const struct schema spec_schema;
