#pragma once
/* `cloche sandbox ports` and `link`. */

#include "remote/sandbox/sandbox_cmd.h"

int sandbox_ports(struct sandbox_cmd *b, struct err *e);
int sandbox_link(struct sandbox_cmd *b, struct err *e);
