#pragma once
/* What is wrong with a command line, for every verb alike. */

#include "base/err.h"

struct option;

/* getopt_long answered `code`, '?' or ':': says which option of `verb` it was, and which was
 * perhaps meant. Always -1. */
int flags_bad(const char *verb, int code, char **argv, const struct option *longs, struct err *e);
