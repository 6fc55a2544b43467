#pragma once
/* What is to be said on a result, over its output and beside it: which limits it met and what was
 * cut, in the server's words (`warnings`), and which signal was its end. */

#include <stdbool.h>

struct buf;
struct json_t;

/* Lines for report_notes. `with_files`: the user wants the files that were made. */
void notes_add(const struct json_t *result, bool with_files, struct buf *to);
