#pragma once
/* `cloche shell`: a Python prompt in a sandbox. */

#include "remote/sandbox/sandbox_cmd.h"

int sandbox_prompt(struct sandbox_cmd *b, struct err *e);
