#pragma once
/* Templates of URIs: {name} is one part of a path, {+name} the rest, slashes too; at most
 * URI_VARIABLES of them, each followed by a slash, other literal text, or the end. */

#include "base/buf.h"

#include <stdbool.h>

#define URI_MAX       8192
#define URI_VARIABLES 4

struct uri_match {
    char *values[URI_VARIABLES];      /* owned: decoded */
    const char *names[URI_VARIABLES]; /* borrowed from the template */
    size_t name_lens[URI_VARIABLES];
    unsigned n;
};
/* Whether the URI fits; then uri_match_done is due. SECURITY: %-escapes are decoded once; what is
 * no UTF-8 then, or has a NUL, fits nothing; nor does an empty part. */
bool uri_matches(const char *pattern, const char *uri, struct uri_match *ret);
const char *uri_variable(const struct uri_match *m, const char *name); /* or NULL */
void uri_match_done(struct uri_match *m);
