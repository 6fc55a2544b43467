#pragma once
/* What sandboxes install packages from, as the operator set it. */

#include "base/err.h"

struct config;

/* Whether pip_index_url, npm_registry and wheels can be meant. */
int packages_check(const struct config *c, struct err *e);
