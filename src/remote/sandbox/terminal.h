#pragma once
/* `cloche sandbox shell`: a terminal there. */

#include "remote/sandbox/sandbox_cmd.h"

int sandbox_terminal(struct sandbox_cmd *b, struct err *e);
