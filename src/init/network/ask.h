#pragma once
/* connect(): what the gate is asked for, and what the kernel does by itself; see ask.c. */

#include "init/internal.h"

void network_connect(struct init *b, uint32_t process, struct caller *c);
