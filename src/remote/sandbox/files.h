#pragma once
/* `cloche sandbox put` and `get`. */

#include "remote/sandbox/sandbox_cmd.h"

int sandbox_put(struct sandbox_cmd *b, struct err *e);
int sandbox_get(struct sandbox_cmd *b, struct err *e);
