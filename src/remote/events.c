/* See events.h. */

#include "remote/events.h"

#include "remote/net/call.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

void events_print(struct events *ev, int fd, const char *text, size_t len) {
    ev->fd = fd;
    buf_clear(&ev->output);
    events_add(ev, text, len);
    ev->written = 0;
}

void events_add(struct events *ev, const char *text, size_t len) {
    screen_add(&ev->screens[ev->fd == STDERR_FILENO], ev->fd, &ev->output, text, len);
}

bool events_is_written(const struct events *ev) {
    return ev->written == ev->output.len;
}

static int read_event(struct events *ev, struct err *e) {
    json_error_t ignored;
    json_auto_t *event = json_loadb(ev->sse.body.data, ev->sse.body.len, JSON_ALLOW_NUL, &ignored);
    if (!json_is_object(event))
        return err_user(e, "bad_reply", "the server sent an event that is no JSON object");
    return ev->fn(ev->arg, ev->sse.event, event, e);
}

/* Up to the next output, or as far as the bytes go. */
static void read_events(struct events *ev) {
    while (!ev->over && !ev->broken && events_is_written(ev)) {
        int rc = sse_next(&ev->sse, &ev->why);
        if (rc == 0)
            return;
        ev->broken = rc < 0 || read_event(ev, &ev->why) < 0;
    }
}

static bool events_take(void *arg, const char *data, size_t len) {
    struct events *ev = arg;
    if (!events_is_written(ev))
        return false;
    sse_add(&ev->sse, data, len);
    read_events(ev);
    return true;
}

static int events_wait_fd(void *arg) {
    const struct events *ev = arg;
    return events_is_written(ev) ? -1 : ev->fd;
}

/* No more at once than a pipe takes without blocking, once poll says that it takes any. */
static int events_on_ready(void *arg, struct err *e) {
    struct events *ev = arg;
    size_t left = ev->output.len - ev->written;
    ssize_t n = write(ev->fd, ev->output.data + ev->written, left < PIPE_BUF ? left : PIPE_BUF);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n < 0 && errno == EPIPE) {
        ev->unread = ev->over = true;
        ev->written = ev->output.len;
        return 0;
    }
    if (n < 0)
        return err_user(e, "output_failed", "cannot write the output: %s", strerror(errno));
    ev->written += (size_t)n;
    read_events(ev);
    return 0;
}

static bool events_is_over(void *arg) {
    const struct events *ev = arg;
    return (ev->over && events_is_written(ev)) || ev->broken;
}

struct remote_sink events_sink(struct events *ev) {
    return (struct remote_sink){.arg = ev,
                                .take = events_take,
                                .wait_fd = events_wait_fd,
                                .on_ready = events_on_ready,
                                .is_over = events_is_over};
}

void events_resume(struct events *ev) {
    sse_done(&ev->sse);
    ev->sse = (struct sse)SSE_INIT;
}

void events_reset(struct events *ev) {
    events_resume(ev);
    buf_clear(&ev->output);
    ev->written = 0;
    ev->over = ev->broken = ev->unread = false;
}

void events_done(struct events *ev) {
    sse_done(&ev->sse);
    buf_done(&ev->output);
}
