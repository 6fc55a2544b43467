/* See cell.h. Events are read one at a time: while what one of them prints waits for our stdout, no
 * further bytes are taken from the network, so that a slow reader slows the program down. stdin is
 * read a byte at a time, when the program wants a line and never before: what it does not ask for
 * stays for whoever reads after us. When the server dies, what runs goes on, and the next server is
 * asked for the events after the last that we have. */

#include "remote/cell.h"

#include "base/fd.h"
#include "cli/report.h"
#include "remote/notes.h"
#include "remote/value.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES (1u << 20)
#define TRIES          5 /* servers in a row that die before they tell anything */

/* ---- what is said meanwhile ---- */

/* Its answer tells nothing that the stream does not; a signal that comes meanwhile counts. */
static void say(struct cell *c, const char *what, json_t *body) {
    AUTO_BUF path = BUF_INIT;
    AUTO_BUF text = BUF_INIT;
    AUTO_REPLY reply = REMOTE_REPLY_INIT;
    struct err ignored;
    buf_addf(&path, "%s%s", c->sandbox, what);
    if (c->kernel && !c->is_command)
        json_object_set_new(body, "kernel_id", json_string(c->kernel));
    const struct remote_call call = {
        .method = "POST", .path = path.data, .json = &text, .upload = -1, .gives_signs = true};
    if (value_dump(body, &text, &ignored) == 0 &&
        remote_do(c->side, &call, &reply, &ignored) == 0 && reply.signal)
        c->signals++;
    json_decref(body);
}

static void interrupt(struct cell *c) {
    AUTO_BUF path = BUF_INIT;
    struct err ignored;
    if (isatty(STDERR_FILENO)) /* behind the ^C */
        (void)fd_write_all(STDERR_FILENO, "\n", 1, &ignored);
    if (!c->is_command) {
        say(c, "/interrupt", json_object());
    } else if (c->id[0]) {
        buf_addf(&path, "/commands/%s/signal", c->id);
        say(c, path.data, json_pack("{s:s}", "signal", "SIGINT"));
    }
}

/* A cell is interrupted when its reader goes; a command would run on. */
static void kill_command(struct cell *c) {
    AUTO_BUF path = BUF_INIT;
    if (!c->is_command || c->only_looks || !c->id[0])
        return;
    buf_addf(&path, "/commands/%s/signal", c->id);
    say(c, path.data, json_pack("{s:s}", "signal", "SIGKILL"));
}

static bool cell_on_signal(void *arg, int signal) {
    struct cell *c = arg;
    if (signal == SIGWINCH)
        return true;
    if (signal != SIGINT || c->only_looks || ++c->signals > 1)
        return false;
    interrupt(c);
    return c->signals < 2;
}

/* ---- input() ---- */

static void show_typing(struct cell *c) {
    if (!c->hides)
        return;
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &c->before);
    c->hides = false;
    struct err ignored;
    (void)fd_write_all(STDERR_FILENO, "\n", 1, &ignored);
}

static void hide_typing(struct cell *c) {
    if (tcgetattr(STDIN_FILENO, &c->before) < 0)
        return;
    struct termios t = c->before;
    t.c_lflag &= ~(tcflag_t)ECHO;
    c->hides = tcsetattr(STDIN_FILENO, TCSADRAIN, &t) == 0;
}

static void answer(struct cell *c, bool at_end) {
    json_t *body = json_object();
    c->waits = false;
    show_typing(c);
    if (at_end && !c->line.len) {
        json_object_set_new(body, "eof", json_true());
    } else {
        /* What is no UTF-8 cannot be sent; an end is better than other characters. */
        json_t *text = json_stringn(c->line.data, c->line.len);
        json_object_set_new(body, text ? "value" : "eof", text ? text : json_true());
    }
    buf_clear(&c->line);
    say(c, "/stdin", body);
}

static int input_fd(void *arg) {
    const struct cell *c = arg;
    return c->waits && c->written == c->output.len ? STDIN_FILENO : -1;
}

static int on_input(void *arg, struct err *e) {
    struct cell *c = arg;
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    do {
        char byte;
        ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            return 0;
        if (n <= 0 || byte == '\n' || c->line.len == LINE_MAX_BYTES) {
            answer(c, n <= 0);
            return 0;
        }
        buf_addc(&c->line, byte);
    } while (poll(&p, 1, 0) > 0);
    (void)e;
    return 0;
}

/* ---- events ---- */

/* What the program or the server says: as much of it as may be shown. */
static void add_text(struct cell *c, const char *text, size_t len) {
    screen_add(&c->screens[c->fd == STDERR_FILENO], c->fd, &c->output, text, len);
}

static void print(struct cell *c, int fd, const char *text, size_t len) {
    c->fd = fd;
    buf_clear(&c->output);
    add_text(c, text, len);
    c->written = 0;
}

static int on_output(struct cell *c, const json_t *event, int fd, struct err *e) {
    const json_t *data = json_object_get(event, "data");
    if (!json_is_string(data))
        return err_user(e, "bad_reply", "the server sent an output event without output");
    print(c, fd, json_string_value(data), json_string_length(data));
    return 0;
}

static void on_value(struct cell *c, const json_t *event) {
    const json_t *bundle = json_object_get(event, "data");
    const json_t *text = json_object_get(bundle, "text/plain");
    struct err why;
    print(c, STDOUT_FILENO, "", 0);
    int rc = images_show(c->images, bundle, &c->output, &why);
    if (rc < 0)
        report_say(why.text);
    if (rc > 0 || !json_is_string(text))
        return;
    add_text(c, json_string_value(text), json_string_length(text));
    add_text(c, "\n", 1);
}

static void on_error(struct cell *c, const json_t *event) {
    bool coloured = isatty(STDERR_FILENO);
    const char *name = value_text(event, "name");
    const json_t *line;
    size_t i;
    print(c, STDERR_FILENO, "", 0);
    json_array_foreach(json_object_get(event, "traceback"), i, line) {
        const char *text = json_string_value(line);
        if (!text)
            continue;
        bool is_red = coloured && *name && strncmp(text, name, strlen(name)) == 0;
        buf_addf(&c->output, "%s", is_red ? "\033[31m" : "");
        add_text(c, text, json_string_length(line));
        buf_addf(&c->output, "%s\n", is_red ? "\033[0m" : "");
    }
    if (i == 0) {
        AUTO_BUF text = BUF_INIT;
        buf_addf(&text, "%s: %s\n", name, value_text(event, "value"));
        add_text(c, text.data, text.len);
    }
}

static void on_question(struct cell *c, const json_t *event) {
    const json_t *prompt = json_object_get(event, "prompt");
    print(c, STDOUT_FILENO, json_is_string(prompt) ? json_string_value(prompt) : "",
          json_string_length(prompt));
    if (json_is_true(json_object_get(event, "password")))
        hide_typing(c);
    buf_clear(&c->line);
    c->waits = true;
}

static void on_start(struct cell *c, const json_t *event) {
    const char *id = value_text(event, "id");
    if (*id && strlen(id) < sizeof c->id && !strpbrk(id, "/?#% "))
        memcpy(c->id, id, strlen(id) + 1);
}

static int on_named(struct cell *c, const char *name, json_t *event, struct err *e) {
    if (strcmp(name, "stdout") == 0)
        return on_output(c, event, STDOUT_FILENO, e);
    if (strcmp(name, "stderr") == 0)
        return on_output(c, event, STDERR_FILENO, e);
    if (strcmp(name, "start") == 0)
        on_start(c, event);
    else if (strcmp(name, "result") == 0 || strcmp(name, "display") == 0)
        on_value(c, event);
    else if (strcmp(name, "error") == 0)
        on_error(c, event);
    else if (strcmp(name, "input") == 0)
        on_question(c, event);
    else if (strcmp(name, "clear") == 0 && isatty(STDOUT_FILENO))
        print(c, STDOUT_FILENO, "\033[2K\r", 5);
    else if (strcmp(name, "end") == 0) {
        c->end = json_incref(event);
        c->over = true;
    } else if (strcmp(name, "failed") == 0) {
        remote_error(json_object_get(event, "error"), &c->cmd->refused);
        c->failed = c->over = true;
    }
    return 0;
}

static int on_event(struct cell *c, struct err *e) {
    json_error_t ignored;
    json_t *event = json_loadb(c->events.body.data, c->events.body.len, JSON_ALLOW_NUL, &ignored);
    if (!json_is_object(event)) {
        json_decref(event);
        return err_user(e, "bad_reply", "the server sent an event that is no JSON object");
    }
    int rc = on_named(c, c->events.event, event, e);
    c->seen = c->events.id;
    json_decref(event);
    return rc;
}

/* ---- the stream ---- */

/* Up to the next output, or as far as the bytes go. */
static void read_events(struct cell *c) {
    while (!c->over && !c->broken && c->written == c->output.len) {
        int rc = sse_next(&c->events, &c->why);
        if (rc == 0)
            return;
        c->broken = rc < 0 || on_event(c, &c->why) < 0;
    }
}

static bool cell_take_bytes(void *arg, const char *data, size_t len) {
    struct cell *c = arg;
    if (c->written < c->output.len)
        return false;
    sse_add(&c->events, data, len);
    read_events(c);
    return true;
}

static int wait_fd(void *arg) {
    const struct cell *c = arg;
    return c->written < c->output.len ? c->fd : -1;
}

/* No more at once than a pipe takes without blocking, once poll says that it takes any. */
static int cell_on_ready(void *arg, struct err *e) {
    struct cell *c = arg;
    size_t left = c->output.len - c->written;
    ssize_t n = write(c->fd, c->output.data + c->written, left < PIPE_BUF ? left : PIPE_BUF);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n < 0 && errno == EPIPE) { /* as a program of this shell would */
        c->unread = c->over = true;
        c->written = c->output.len;
        return 0;
    }
    if (n < 0)
        return err_user(e, "output_failed", "cannot write the output: %s", strerror(errno));
    c->written += (size_t)n;
    read_events(c);
    return 0;
}

static bool cell_is_over(void *arg) {
    const struct cell *c = arg;
    return (c->over && c->written == c->output.len) || c->broken;
}

static int follow_cell(struct cell *c, const char *method, const char *path, const struct buf *body,
                       struct remote_reply *reply, struct err *e) {
    const struct remote_sink sink = {.arg = c,
                                     .take = cell_take_bytes,
                                     .wait_fd = wait_fd,
                                     .on_ready = cell_on_ready,
                                     .is_over = cell_is_over,
                                     .input_fd = input_fd,
                                     .on_input = on_input,
                                     .on_signal = cell_on_signal};
    const struct remote_call call = {.method = method,
                                     .path = path,
                                     .header = "Accept: text/event-stream",
                                     .json = body,
                                     .upload = -1,
                                     .sink = &sink,
                                     .gives_signs = true};
    return remote_do(c->cmd->r, &call, reply, e);
}

/* From the next server, which is there within a second, and from the one after it: we wait at its
 * socket. False: the error stays. */
static bool follow_on(struct cell *c, struct remote_reply *reply, const struct err *e) {
    struct err again = *e;
    int rc = -1;
    unsigned tries = 0;
    while (rc < 0 && strcmp(again.kind, "engine_gone") == 0 && c->id[0] && tries++ < TRIES) {
        AUTO_BUF path = BUF_INIT;
        uint64_t seen = c->seen;
        sse_done(&c->events);
        c->events = (struct sse)SSE_INIT;
        buf_addf(&path, "%s%s%s/events?after=%" PRIu64, c->is_command ? c->sandbox : "/v1",
                 c->is_command ? "/commands/" : "/executions/", c->id, seen);
        rc = follow_cell(c, "GET", path.data, NULL, reply, &again);
        if (c->seen > seen)
            tries = 0;
    }
    return rc == 0 && reply->status != 404;
}

int cell_run(struct cell *c, const char *method, const char *path, const struct buf *body,
             struct err *e) {
    AUTO_REPLY reply = REMOTE_REPLY_INIT;
    int rc = follow_cell(c, method, path, body, &reply, e);
    if (rc < 0 && follow_on(c, &reply, e))
        rc = 0;
    show_typing(c);
    if (reply.signal || c->unread)
        kill_command(c);
    if (rc < 0)
        return -1;
    if (c->broken) {
        *e = c->why;
        return -1;
    }
    if (c->failed)
        return err_user(e, "refused", "the server failed");
    if (reply.signal || (reply.status && reply.status / 100 != 2))
        return sandbox_cmd_refused(c->cmd, &reply, e);
    if (!c->over)
        return err_user(e, "engine_gone", "the server went away while the program ran");
    return 0;
}

/* ---- what came of it ---- */

static void say_why(const struct cell *c, const char *status) {
    AUTO_BUF lines = BUF_INIT;
    const char *problem = value_text(c->end, "problem"); /* of commands */
    if (*problem)
        buf_addf(&lines, "%s\n", problem);
    else if (!c->is_command && strcmp(status, "killed") == 0 &&
             !json_is_integer(json_object_get(c->end, "signal")))
        buf_adds(&lines, "the kernel ended before the code did\n");
    notes_add(c->end, false, &lines);
    report_notes(lines.data);
    if (json_is_true(json_object_get(c->end, "kernel_restarted")))
        report_say("this ran in a fresh kernel: earlier variables are gone");
}

int cell_status(const struct cell *c) {
    const char *status = value_text(c->end, "status");
    const json_t *code = json_object_get(c->end, "exit_code");
    int signal = (int)json_integer_value(json_object_get(c->end, "signal"));
    if (c->unread)
        return 128 + SIGPIPE;
    say_why(c, status);
    if (strcmp(status, "timeout") == 0 || json_is_true(json_object_get(c->end, "timed_out")))
        return 124;
    if (strcmp(status, "interrupted") == 0)
        return 128 + SIGINT;
    if (strcmp(status, "memory_exceeded") == 0)
        return 128 + SIGKILL;
    if (signal > 0)
        return 128 + (signal & 127);
    if (json_is_integer(code))
        return (int)(json_integer_value(code) & 255);
    return strcmp(status, "ok") == 0 ? 0 : 1;
}

void cell_reset(struct cell *c) {
    json_decref(c->end);
    c->end = NULL;
    sse_done(&c->events);
    c->events = (struct sse)SSE_INIT;
    buf_clear(&c->output);
    buf_clear(&c->line);
    c->written = 0;
    c->id[0] = '\0';
    c->seen = 0;
    c->over = c->broken = c->failed = c->unread = c->waits = false;
    c->signals = 0;
}

void cell_done(struct cell *c) {
    json_decref(c->end);
    sse_done(&c->events);
    buf_done(&c->output);
    buf_done(&c->line);
}
