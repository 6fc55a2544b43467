#pragma once
/* What commands.c shares with others that run commands in live sandboxes. */

#include "api/core/call.h"
#include "engine/live/live.h"

/* The command that the path names; NULL: a reply was sent. */
struct command *call_command(struct call *c);
/* Before command_new: who asks for it. */
void command_asked_by(struct command_request *q, const struct call *c);
/* See on_command of the engine: its line in the audit log. */
void command_over(void *arg, const struct live *l, const struct command *c);
/* From an earlier server: see live_heir. */
void command_inherit(void *arg, struct live *l, struct command *c, uint64_t number);
