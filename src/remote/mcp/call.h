#pragma once
/* A message of the client on its way: a POST to the server, and what comes back, line by line. */

#include "remote/mcp/message.h"
#include "remote/mcp/pump.h"

/* `line` is the message's own text. */
void call_start(struct pump *p, const struct message *m, const char *line, size_t len);
/* Whether a request is under way that the client waits for. A stream that never ends is none. */
bool call_any_waits(const struct pump *p);
/* notifications/cancelled. True: that was all; false: the server is to be told. */
bool call_cancel(struct pump *p, const struct message *m);
