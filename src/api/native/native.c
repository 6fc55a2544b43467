/* See native.h. The order is that of /openapi.json. The path of a terminal
 * comes before those of commands, which would take its last word for an id. */

#include "api/native/native.h"

#include <stddef.h>

/* clang-format off */
const struct route_table *const native_tables[] = {
    &execute_routes,
    &execute_ws_routes,
    &run_routes,
    &batch_routes,
    &executions_routes,
    &sandboxes_routes,
    &network_routes,
    &ports_routes,
    &kernels_routes,
    &sandbox_ws_routes,
    &command_pty_routes,
    &commands_routes,
    &files_routes,
    &files_list_routes,
    &sandbox_file_routes,
    &profiles_routes,
    &info_routes,
    NULL,
};
/* clang-format on */
