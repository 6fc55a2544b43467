/* See command_io.h. */

#include "engine/live/command_io.h"

#include "base/fd.h"
#include "engine/live/command.h"
#include "engine/live/internal.h"
#include "engine/live/keep.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define STDIN_MAX (1u << 20) /* bytes that wait for the program to read */

#define SCREEN_MAX (64u << 10) /* bytes that are kept of a terminal, for who sits down at it */

static struct loop *command_loop(const struct command *c) {
    return c->live->engine->loop;
}

static void command_emit(struct command *c, int stream, const struct buf *text) {
    AUTO_BUF json = BUF_INIT;
    live_said(c->live);
    if (text->len == 0 || !c->cb.on_event)
        return;
    utf8_stream_json(text, &json);
    c->cb.on_event(c->cb.arg, stream == 0 ? "stdout" : "stderr", &json);
}

static void command_on_data(struct output *o, const void *data, size_t len) {
    struct command *c = o->arg;
    int stream = o == &c->out[0] ? 0 : 1;
    AUTO_BUF text = BUF_INIT;
    if (c->cb.on_bytes)
        c->cb.on_bytes(c->cb.arg, data, len);
    utf8_stream_add(&c->utf8[stream], data, len, &text);
    command_emit(c, stream, &text);
}

void command_watch_output(struct command *c, int stream, int fd) {
    struct err e;
    struct output *o = &c->out[stream];
    o->arg = c;
    o->on_data = command_on_data;
    o->is_terminal = fd == c->terminal;
    output_begin(o, command_loop(c), fd, o->is_terminal ? SCREEN_MAX : c->req.output_bytes, &e);
}

static int stdin_fd(const struct command *c) {
    return c->req.rows ? c->terminal : c->process.fds[0];
}

static void command_close_stdin(struct command *c) {
    loop_unwatch(command_loop(c), &c->stdin_watch);
    c->stdin_closed = true;
    process_close_stdin(&c->process);
}

void command_pump_stdin(struct command *c) {
    struct err e;
    int fd = stdin_fd(c);
    while (fd >= 0 && c->stdin_at < c->stdin_data.len) {
        ssize_t n = write(fd, c->stdin_data.data + c->stdin_at, c->stdin_data.len - c->stdin_at);
        if (n < 0 && errno == EAGAIN) {
            if (c->stdin_watch.fd < 0)
                loop_watch(command_loop(c), &c->stdin_watch, fd, EPOLLOUT, &e);
            return;
        }
        if (n < 0) { /* nobody reads any more */
            command_close_stdin(c);
            break;
        }
        c->stdin_at += (size_t)n;
    }
    if (fd < 0)
        return;
    buf_clear(&c->stdin_data);
    c->stdin_at = 0;
    loop_unwatch(command_loop(c), &c->stdin_watch);
    if (c->stdin_closed)
        process_close_stdin(&c->process);
}

static void command_on_stdin(struct watch *w, uint32_t events) {
    (void)events;
    command_pump_stdin(w->arg);
}

int command_stdin(struct command *c, const void *data, size_t len, struct err *e) {
    static const char end = 4; /* Ctrl-D, which is the end at a terminal */
    if (c->status != COMMAND_RUNNING)
        return err_user(e, "command_over", "the command is over: nobody reads its stdin");
    if (c->stdin_closed)
        return err_user(e, "stdin_closed", "the command's stdin is closed");
    if (c->stdin_data.len - c->stdin_at + len > STDIN_MAX)
        return err_user(e, "stdin_full", "the command does not read: %zu bytes wait already",
                        c->stdin_data.len - c->stdin_at);
    buf_drop(&c->stdin_data, c->stdin_at); /* one that is never empty does not grow */
    c->stdin_at = 0;
    if (len == 0 && c->req.rows)
        buf_add(&c->stdin_data, &end, 1);
    else if (len == 0)
        c->stdin_closed = true;
    buf_add(&c->stdin_data, data, len);
    command_pump_stdin(c);
    return 0;
}

void command_resize(struct command *c, uint32_t rows, uint32_t columns) {
    const struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    if (c->terminal >= 0)
        ioctl(c->terminal, TIOCSWINSZ, &size);
}

void command_hang_up(struct command *c) {
    if (c->status != COMMAND_RUNNING)
        return;
    if (c->terminal < 0) { /* it has not begun */
        process_kill(&c->process);
        return;
    }
    output_end(&c->out[0]);
    loop_unwatch(command_loop(c), &c->stdin_watch);
    c->stdin_closed = true;
    fd_close(&c->terminal);
}

void command_hold(struct command *c, bool hold) {
    output_hold(&c->out[0], hold);
    output_hold(&c->out[1], hold);
}

void command_drain(struct command *c) {
    for (int i = 0; i < 2; i++) {
        output_drain(&c->out[i]);
        output_end(&c->out[i]);
        AUTO_BUF text = BUF_INIT;
        utf8_stream_end(&c->utf8[i], &text);
        command_emit(c, i, &text);
    }
    loop_unwatch(command_loop(c), &c->stdin_watch);
}

void command_stop_watching(struct command *c) {
    loop_unwatch(command_loop(c), &c->stdin_watch);
    output_end(&c->out[0]);
    output_end(&c->out[1]);
}

void command_io_init(struct command *c) {
    c->stdin_watch = (struct watch){.fd = -1, .fn = command_on_stdin, .arg = c};
    c->stdin_data = (struct buf)BUF_INIT;
    for (int i = 0; i < 2; i++) {
        c->out[i].kept = (struct buf)BUF_INIT;
        c->out[i].watch.fd = c->out[i].fd = -1;
    }
}

void command_io_done(struct command *c) {
    output_free(&c->out[0]);
    output_free(&c->out[1]);
    buf_done(&c->stdin_data);
}
