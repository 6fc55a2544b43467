#pragma once
/* A state is an enum, who may follow whom is a table, and one function changes it. That function
 * asks here first: what the table does not allow is a bug of ours, and the server ends with it. */

#include <stdint.h>

/* `next` has a bit for each state that may follow state `from`; `what` is for the log. */
void state_check(const char *what, const uint8_t *next, unsigned from, unsigned to);
