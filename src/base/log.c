/* See log.h. A line is written by one write() of at most PIPE_BUF bytes, so that lines of several
 * processes do not mix.
 *
 * stderr is shared with whoever started us, so it cannot be made non-blocking: that would change it
 * for them too. A socket has MSG_DONTWAIT and a pipe RWF_NOWAIT (Linux 6.4); elsewhere we look
 * whether it takes anything before we write. Files do not block. */

#include "base/log.h"

#include "base/log_line.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_MAX 1024

enum target { TARGET_UNKNOWN, TARGET_FILE, TARGET_PIPE, TARGET_SOCKET, TARGET_OTHER };

static struct {
    const char *process;
    enum log_level level;
    bool json;
    enum target target;
    uint64_t lost, told; /* lines; of which was told */
} log_state = {"cloche", LOG_INFO, false, TARGET_UNKNOWN, 0, 0};

static const char *const level_words[] = {"error", "warn", "info", "debug"};

void log_init(const char *process, enum log_level level) {
    log_state.process = process;
    log_state.level = level;
}

void log_set_format(const char *word) {
    log_state.json = strcmp(word, "json") == 0;
}

uint64_t log_lost(void) {
    return log_state.lost;
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

static enum target find_target(void) {
    struct stat st;
    if (fstat(STDERR_FILENO, &st) < 0)
        return TARGET_OTHER;
    return S_ISREG(st.st_mode)    ? TARGET_FILE
           : S_ISFIFO(st.st_mode) ? TARGET_PIPE
           : S_ISSOCK(st.st_mode) ? TARGET_SOCKET
                                  : TARGET_OTHER;
}

static ssize_t write_if_ready(const char *line, size_t len) {
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&p, 1, 0) <= 0)
        return -1;
    return write(STDERR_FILENO, line, len);
}

/* False when nobody takes it now. */
static bool put_line(const char *line, size_t len) {
    struct iovec v = {(void *)(uintptr_t)line, len};
    ssize_t n = -1;
    if (log_state.target == TARGET_UNKNOWN)
        log_state.target = find_target();
    switch (log_state.target) {
    case TARGET_FILE:
        n = write(STDERR_FILENO, line, len);
        break;
    case TARGET_SOCKET:
        n = send(STDERR_FILENO, line, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        break;
    case TARGET_PIPE:
        n = pwritev2(STDERR_FILENO, &v, 1, -1, RWF_NOWAIT);
        if (n < 0 && (errno == EOPNOTSUPP || errno == EINVAL || errno == ENOSYS)) {
            log_state.target = TARGET_OTHER; /* an older kernel */
            n = write_if_ready(line, len);
        }
        break;
    case TARGET_UNKNOWN:
    case TARGET_OTHER:
        n = write_if_ready(line, len);
        break;
    }
    return n > 0;
}

static bool write_event(enum log_level level, const char *message) {
    char ts[40], line[PIPE_BUF];
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    size_t n = strftime(ts, sizeof ts, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(ts + n, sizeof ts - n, ".%03ldZ", now.tv_nsec / 1000000);
    struct log_line l = {.json = log_state.json,
                         .ts = ts,
                         .level = level_words[level],
                         .process = log_state.process,
                         .pid = (int)getpid(),
                         .message = message};
    return put_line(line, log_line_write(&l, line, sizeof line));
}

static bool tell_lost(void) {
    char message[80];
    if (log_state.lost == log_state.told)
        return true;
    snprintf(message, sizeof message, "log lines lost because nobody read them n=%llu",
             (unsigned long long)(log_state.lost - log_state.told));
    if (!write_event(LOG_WARN, message))
        return false;
    log_state.told = log_state.lost;
    return true;
}

void log_at(enum log_level level, const char *fmt, ...) {
    if (level > log_state.level)
        return;
    char message[MESSAGE_MAX];
    int kept = errno;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    if (!tell_lost() || !write_event(level, message))
        log_state.lost++;
    errno = kept;
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
