#pragma once
/* Removing what may be a whole tree, which nobody else writes to. Links are not followed. */

#include <stdbool.h>

/* Some of it: `budget` counts down with every name. True when all of it is gone, or what is left
 * cannot be removed. */
bool rmtree_some(int at, const char *name, unsigned *budget);
/* All of it. */
void rmtree(int at, const char *name);
