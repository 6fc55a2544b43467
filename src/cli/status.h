#pragma once
/* `cloche status`: how a running engine or server is doing. argv[0] is the verb itself; the value
 * is the exit status. */

#include "base/err.h"

struct buf;

int verb_status(int argc, char **argv);

/* What the engine on that socket says of itself, as JSON. */
int status_ask(const char *path, struct buf *to, struct err *e);
