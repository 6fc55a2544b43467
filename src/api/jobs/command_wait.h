#pragma once
/* A command in a live sandbox that a request waits for. For api/ only. */

#include "api/core/call.h"
#include "engine/live/live.h"

/* Takes the contents of the request in any case. `then` replies when it is over, unless the client
 * has its reply; the call's state is free then. The command ends with its client, as with a closed
 * terminal. */
void command_wait(struct call *c, struct live *l, struct command_request *q,
                  void (*then)(struct call *c, const struct command_end *end));
