#pragma once
/* What a build says of itself (py/profile/build.py), checked. SECURITY: it was said in a sandbox,
 * by packages that a stranger chose; it is shown, and written into files. */

#include "base/err.h"

struct json_t;

/* What was installed: an array of {name, version, sha256?, url?}. The caller's reference, also
 * after a failure. */
int built_installed(const struct json_t *said, struct json_t **ret, struct err *e);
/* The version of Python that it is for, as it may stand in a path; NULL: it says none. */
const char *built_version(const struct json_t *result);
