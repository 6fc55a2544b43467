#pragma once
/* Profiles as the API shows them: the operator's, and a tenant's own. For api/ only. */

#include "base/buf.h"
#include "base/schema.h"

#include <stdbool.h>

struct engine;
struct own_profile;

extern const struct schema profile_schema;
/* The object of the operator's i-th, or of one of a tenant's. */
void profile_put(const struct engine *g, unsigned i, struct buf *to);
void profile_put_own(const struct own_profile *p, bool in_list, struct buf *to);
