#pragma once
/* From the text of all settings to the configuration. */

#include "base/err.h"

struct config;
struct options;

/* Reads every value, checks it against its bounds, and fits maxima and defaults to each other.
 * After options_load; on failure *ret is empty. */
int options_resolve(struct options *o, struct config *ret, struct err *e);
