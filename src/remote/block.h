#pragma once
/* When what was typed at a Python prompt is whole and can be run. */

#include <stdbool.h>

/* Lines, each with its newline. A bracket or a triple quote that is open or a backslash at the end
 * asks for more; so does a block (a line that ends with a colon, a decorator, a %%magic) until an
 * empty line ends it. */
bool block_is_whole(const char *text);
