#pragma once
/* One line an event on stderr, as logfmt or JSON (log_line.h). Only the top of a process logs. A
 * message is `event key=value …`; what users control goes through log_quote. Nobody waits for a
 * reader of the log that does not read: such lines are dropped, counted, and the next one that goes
 * through says how many. The level and the format are the one piece of global state. */

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_init(const char *process, enum log_level level);
/* "logfmt" or "json". */
void log_set_format(const char *word);
int log_level_parse(const char *word, enum log_level *ret, struct err *e);
void log_at(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Lines that nobody took, since the process started. */
uint64_t log_lost(void);
/* Escaped, quoted and cut to fit; returns out. cap is at least 8. */
const char *log_quote(const char *text, char *out, size_t cap);
/* The same for an argument of log_error and its kin. */
#define log_text(text) log_quote((text), (char[480]){0}, 480)

#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)
