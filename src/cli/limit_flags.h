#pragma once
/* The limits (wire/limits.h) as flags: --memory MB and so on, for `cloche run`, `cloche sandbox`
 * and `cloche shell`. */

#include "base/err.h"
#include "wire/limits.h"

struct option;

/* All of them for getopt_long: it answers `first` plus the limit's place in limits_info. */
void limit_flags_options(struct option *to, int first);
/* What stands behind the flag of limits_info[i]. */
int limit_flags_read(size_t i, const char *text, struct limits *to, struct err *e);
/* The help of those whose scope is among these, on stdout; the texts begin in that column. */
void limit_flags_help(unsigned scopes, int column);
