/* See out.h. */

#include "remote/mcp/out.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

void out_line(struct out *o, const char *text, size_t len) {
    if (o->closed)
        return;
    char *to = buf_reserve(&o->lines, len + 1);
    for (size_t i = 0; i < len; i++)
        to[i] = text[i] == '\n' || text[i] == '\r' ? ' ' : text[i];
    to[len] = '\n';
    buf_commit(&o->lines, len + 1);
}

size_t out_waits(const struct out *o) {
    return o->lines.len - o->written;
}

/* No more at once than a pipe takes without blocking: stdout may be shared with others, so it is
 * not ours to make non-blocking. */
int out_write(struct out *o, struct err *e) {
    size_t left = out_waits(o);
    ssize_t n = write(STDOUT_FILENO, o->lines.data + o->written, left < PIPE_BUF ? left : PIPE_BUF);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n < 0 && errno != EPIPE && errno != ECONNRESET)
        return err_user(e, "output_failed", "cannot write to the client: %s", strerror(errno));
    if (n < 0) {
        o->closed = true;
        n = (ssize_t)left;
    }
    o->written += (size_t)n;
    if (o->written == o->lines.len || o->written > OUT_FULL) {
        buf_drop(&o->lines, o->written);
        o->written = 0;
    }
    return 0;
}

void out_done(struct out *o) {
    buf_done(&o->lines);
}
