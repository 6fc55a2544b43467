/* See log.h. A line is written by one write(), so that lines of several processes do not mix. */

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
    const char *process;
    enum log_level level;
} log_state = {"cloche", LOG_INFO};

static const char *const level_words[] = {"error", "warn", "info", "debug"};

void log_init(const char *process, enum log_level level) {
    log_state.process = process;
    log_state.level = level;
}

int log_level_parse(const char *word, enum log_level *ret, struct err *e) {
    for (int i = 0; i <= LOG_DEBUG; i++) {
        if (strcmp(word, level_words[i]) == 0) {
            *ret = (enum log_level)i;
            return 0;
        }
    }
    return err_user(e, "bad_value", "log level is \"%.40s\"; it can be error, warn, info or debug",
                    word);
}

void log_at(enum log_level level, const char *fmt, ...) {
    if (level > log_state.level)
        return;
    char line[1024];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct tm tm;
    gmtime_r(&now.tv_sec, &tm);
    size_t n = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &tm);
    n += (size_t)snprintf(line + n, sizeof line - n, ".%03ldZ %-5s %s[%d] ", now.tv_nsec / 1000000,
                          level_words[level], log_state.process, (int)getpid());
    va_list ap;
    va_start(ap, fmt);
    int m = vsnprintf(line + n, sizeof line - n - 1, fmt, ap);
    va_end(ap);
    n += m < 0 ? 0 : (size_t)m;
    if (n > sizeof line - 2)
        n = sizeof line - 2;
    line[n++] = '\n';
    (void)!write(STDERR_FILENO, line, n);
}

const char *log_quote(const char *text, char *out, size_t cap) {
    size_t n = 0;
    out[n++] = '"';
    for (; *text && n + 8 < cap; text++) { /* room for this one, "…", the quote and the NUL */
        unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c == 0x7f || c == '"' || c == '\\')
            n += (size_t)snprintf(out + n, cap - n, "\\x%02x", c);
        else
            out[n++] = (char)c;
    }
    if (*text)
        n += (size_t)snprintf(out + n, cap - n, "…");
    out[n++] = '"';
    out[n] = '\0';
    return out;
}
