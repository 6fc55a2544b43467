#pragma once
/* The configuration file: one JSON object whose keys are settings, and "profiles" with the
 * definitions of profiles. A key that nobody knows is an error that names it. */

#include "base/err.h"

#include <stddef.h>

struct options;

/* Sets in `o` what the file says. */
int config_file_read(const char *path, struct options *o, struct err *e);
/* The same with the text; `path` is for messages. */
int config_file_parse(const char *path, const char *text, size_t len, struct options *o,
                      struct err *e);
