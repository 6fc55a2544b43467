#pragma once
/* When what was typed at a Python prompt is whole and can be run. */

#include <stdbool.h>

/* Lines, each with its newline. A bracket or a triple quote that is open or a backslash at the end
 * asks for more; so does a block (a line that ends with a colon, a decorator, a %%magic) until an
 * empty line ends it. */
bool block_is_whole(const char *text);
/* Nothing is open but such a block: an empty line would end it, or has. */
bool block_is_compound(const char *text);
/* This line can only belong to the block before it: it is indented, or else, except and the like.
 */
bool block_goes_on_with(const char *line);
/* How many blanks the next line begins with. */
unsigned block_indent(const char *text);
