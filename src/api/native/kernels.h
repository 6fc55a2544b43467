#pragma once
/* What is done with kernels, also over a WebSocket. For native/ only. */

#include "api/core/call.h"

struct kernel;

extern const struct schema which_kernel_schema, stdin_schema;

/* Interrupts it, and tells whether something ran. */
extern const struct schema interrupted_schema;
void kernel_interrupt_json(struct kernel *k, struct buf *to);
/* To its input(): what the body has as `value`, or with `eof` nothing. */
int kernel_answer(struct kernel *k, const json_t *body, struct err *e);
