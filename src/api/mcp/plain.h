#pragma once
/* What programs print, as text for a model: what a terminal would show at the end. For api/mcp
 * only. */

#include "base/buf.h"

/* Colours and other escape sequences are left out, a carriage return writes its line anew (as
 * progress bars do), a backspace takes a character back; other control characters are written as
 * \x07. The text is UTF-8. */
void plain_add(struct buf *to, const char *text, size_t len);
