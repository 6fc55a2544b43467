#pragma once
/* What the files about commands share. For native/ only. */

#include "api/core/call.h"
#include "engine/live/live.h"

/* The command that the path names; NULL: a reply was sent. */
struct command *call_command(struct call *c);
