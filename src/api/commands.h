#pragma once
/* What commands.c shares with command_pty.c. */

#include "api/call.h"
#include "engine/live.h"

/* The command that the path names; NULL: a reply was sent. */
struct command *call_command(struct call *c);
