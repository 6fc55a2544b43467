#pragma once
/* What commands.c shares with command_pty.c. */

#include "api/call.h"
#include "engine/live.h"

/* The command that the path names; NULL: a reply was sent. */
struct command *call_command(struct call *c);
/* From an earlier server: see live_heir. */
void command_inherit(void *arg, struct live *l, struct command *c, uint64_t number);
