#pragma once
/* One line an event on stderr: `level event key=value …`. Only the top of a process logs. Strings
 * that users control go through log_quote. The level is the one piece of global state. */

#include "base/err.h"

#include <stddef.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_init(const char *process, enum log_level level);
int log_level_parse(const char *word, enum log_level *ret, struct err *e);
void log_at(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Escaped, quoted and cut to fit; returns out. cap is at least 8. */
const char *log_quote(const char *text, char *out, size_t cap);

#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)
