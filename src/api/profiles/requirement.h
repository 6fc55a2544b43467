#pragma once
/* A line of what a profile is to have, as "polars" or "rich[jupyter]>=13,<15;
 * python_version<'3.13'".
 *
 * SECURITY: pip reads it in the build's sandbox, where an option, a path or a URL could lead it
 * elsewhere than to the operator's index. So a line is a name, versions and a condition, and
 * nothing else gets there. */

#include <stdbool.h>
#include <stddef.h>

#define REQUIREMENT_MAX 300 /* bytes */

/* NULL: it is one, or (*ret_blank) nothing but a comment. Otherwise what is wrong with it. */
const char *requirement_fault(const char *line, size_t len, bool *ret_blank);
