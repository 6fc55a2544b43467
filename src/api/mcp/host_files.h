#pragma once
/* Files for `cloche mcp` (src/remote/mcp/host_files.c). For api/ only. */

#include "api/core/route.h"

extern const struct route_table host_file_routes;
