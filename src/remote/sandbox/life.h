#pragma once
/* `cloche sandbox delete`, `interrupt`, `restart`, `pause`, `resume` and `extend`. */

#include "remote/sandbox/sandbox_cmd.h"

int sandbox_delete(struct sandbox_cmd *b, struct err *e);
int sandbox_interrupt(struct sandbox_cmd *b, struct err *e);
int sandbox_restart(struct sandbox_cmd *b, struct err *e);
int sandbox_pause(struct sandbox_cmd *b, struct err *e);
int sandbox_resume(struct sandbox_cmd *b, struct err *e);
int sandbox_network(struct sandbox_cmd *b, struct err *e);
int sandbox_extend(struct sandbox_cmd *b, struct err *e);
