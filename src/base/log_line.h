#pragma once
/* One event as a line of the log. The message is `words key=value key="quoted value" …`, as the
 * callers of log.h write it; here it becomes logfmt or a JSON object, which begin with the same
 * five names: ts, level, process, pid, msg. For log.c; works without memory. */

#include <stdbool.h>
#include <stddef.h>

struct log_line {
    bool json;
    const char *ts, *level, *process;
    int pid;
    const char *message;
};

/* Writes at most cap bytes, the newline among them, and no NUL; what does not fit is left out, and
 * the line is well-formed all the same. cap is at least 256. Returns how many. */
size_t log_line_write(const struct log_line *l, char *out, size_t cap);
