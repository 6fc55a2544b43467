#pragma once
/* --python PATH|VERSION. */

#include "base/err.h"

/* The interpreter itself, behind all links: a profile stays with it when a link changes. NULL: the
 * system's. */
int python_find(const char *said, char **ret, struct err *e);
