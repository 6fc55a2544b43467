#pragma once
/* Servers inside the sandbox, for clients of ours: see ports.c. */

#include "base/err.h"
#include "wire/codec.h"

#include <stdbool.h>
#include <stdint.h>

#define PORTS_MAX 1024

/* A socket that connects to that port of the sandbox's loopback, and may not have done so yet. */
int ports_connect(const struct i_connect *m, int *ret_fd, struct err *e);
/* The ports of the loopback on which the sandbox's user listens, ascending, each once. */
unsigned ports_list(uint32_t uid, uint16_t ports[PORTS_MAX], bool *ret_cut);
