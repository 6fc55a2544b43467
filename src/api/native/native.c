/* See native.h. The order is that of /openapi.json. */

#include "api/native/native.h"

#include <stddef.h>

const struct route_table *const native_tables[] = {
    &execute_routes,      &execute_ws_routes,  &batch_routes,
    &executions_routes,   &sandboxes_routes,   &kernels_routes,
    &sandbox_ws_routes,   &command_pty_routes, /* before commands: its path would be a command's id
                                                */
    &commands_routes,     &files_routes,       &files_list_routes,
    &sandbox_file_routes, &info_routes,        NULL,
};
