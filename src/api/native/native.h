#pragma once
/* The native API: /v1 and what stands beside it. One file for each resource, with its routes. For
 * api/ only. */

#include "api/core/route.h"

extern const struct route_table execute_routes, execute_ws_routes, run_routes, batch_routes;
extern const struct route_table executions_routes;
extern const struct route_table sandboxes_routes, network_routes, kernels_routes;
extern const struct route_table ports_routes, sandbox_ws_routes;
extern const struct route_table command_pty_routes, commands_routes;
extern const struct route_table files_routes, files_list_routes, sandbox_file_routes;
extern const struct route_table profiles_routes, info_routes;

/* All of them; ends with NULL. */
extern const struct route_table *const native_tables[];
