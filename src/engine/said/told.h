#pragma once
/* Events that programs and cells have in common, as JSON objects. What is printed is in
 * base/utf8_stream.h, what is shown in shown.h, the end in outcome.h. */

#include <stdbool.h>

struct buf;

/* It begins. kernel_id: NULL where there is no live kernel; resumed: after another server. */
void told_start(const char *id, const char *kernel_id, bool resumed, struct buf *to);
/* It waits for an answer to input(), or to getpass(). prompt: NULL is none. */
void told_input(const char *prompt, bool password, struct buf *to);
/* An exception that ended it, with the lines of its traceback. */
void told_error(const char *name, const char *value, char *const *lines, unsigned n,
                struct buf *to);
