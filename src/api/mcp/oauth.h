#pragma once
/* Where MCP clients without a key look for a way to get one. For api/ only. */

#include "api/core/route.h"

extern const struct route_table oauth_routes;
