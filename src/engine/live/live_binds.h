#pragma once
/* Directories of the host that a live sandbox may ask for: those that the operator allows
 * (bind_allow) and what is below them. */

#include "base/err.h"

#include <stdbool.h>

struct engine;
struct live_request;

struct live_bind {
    const char *host; /* absolute */
    const char *path; /* below /workspace, which may stand before it */
    bool writable;
};

/* Adds it to the request. -1 with kind "bad_value" or "bind_not_allowed". */
int live_bind_add(const struct engine *g, struct live_request *q, const struct live_bind *b,
                  struct err *e);
