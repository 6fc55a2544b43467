#pragma once
/* A state is an enum, who may follow whom is a table, and one function changes it. That function
 * asks here first: what the table does not allow is a bug of ours, and the server ends with it,
 * since nobody knows what else is wrong.
 *
 * SECURITY: nothing that a process in a sandbox says, or init, or a zygote, may come to that. Who
 * takes a message looks at the state before it changes anything: a message that may be late is left
 * out, and one that no honest peer sends ends the sandbox (sandbox_break). Scripts for all of them,
 * and storms of messages in any order, are in tests/unit/engine/test_hostile.c. */

#include <stdint.h>

/* `next` has a bit for each state that may follow state `from`; `what` is for the log. */
void state_check(const char *what, const uint8_t *next, unsigned from, unsigned to);
