#pragma once
/* The dialects that this server can speak. */

#include "api/core/dialect.h"

/* Ends with NULL; the order is that of /openapi.json. */
extern const struct dialect *const dialects[];
