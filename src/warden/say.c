/* See say.h. */

#include "warden/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void warden_say(struct warden *w, const char *fmt, ...) {
    char line[2200];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line - 1, fmt, ap);
    va_end(ap);
    size_t len = n < 0 ? 0 : (size_t)n >= sizeof line - 1 ? sizeof line - 2 : (size_t)n;
    for (size_t i = 0; i < len; i++) {
        if (line[i] == '\n')
            line[i] = ' ';
    }
    line[len] = '\n';
    (void)!write(w->ready_fd, line, len + 1);
}
