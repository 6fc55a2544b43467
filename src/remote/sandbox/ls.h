#pragma once
/* `cloche sandbox ls`. */

#include "remote/sandbox/sandbox_cmd.h"

int sandbox_ls(struct sandbox_cmd *b, struct err *e);
