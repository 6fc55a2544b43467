#pragma once
/* `cloche sandbox exec` and `logs`. */

#include "remote/sandbox/sandbox_cmd.h"

int sandbox_exec(struct sandbox_cmd *b, struct err *e);
int sandbox_logs(struct sandbox_cmd *b, struct err *e);
