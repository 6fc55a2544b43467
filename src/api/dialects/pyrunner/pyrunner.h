#pragma once
/* The dialect PyRunner, where it is not a route of its own. For api/ only. */

#include "api/core/call.h"

#define PYRUNNER         "pyrunner" /* its name in --dialects */
#define PYRUNNER_VERSION "1.0.0"    /* what its clients have always seen */

/* What GET / says for its clients, into the object that is open. */
void pyrunner_put_about(const struct call *c, bool up, struct jw *j);
