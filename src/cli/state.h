#pragma once
/* The engine's state (engine_state) for people: what `cloche status` prints. */

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

struct json_t;

/* The command line of `cloche status`. */
struct status_options {
    bool help, json;
    const char *server, *key_file; /* into argv, or NULL */
    const char *socket, *config;
};
int status_options_parse(int argc, char **argv, struct status_options *ret, struct err *e);

/* `where`: the socket or URL that answered. */
void state_print(const struct json_t *state, const char *where);
