#pragma once
/* Which URLs may be fetched. */

#include <stdbool.h>

/* SECURITY: whether the URL lies below one of those that are allowed, a list with commas:
 * the same scheme, host and port, and a path that is theirs or goes on behind a slash. */
bool fetch_is_allowed(const char *url, const char *allowed);
