/* See cell.h. stdin is read a byte at a time, when the program wants a line and never before: what
 * the program does not ask for stays for whoever reads after us. When the server dies, what runs
 * goes on, and the next server is asked for the events after the last that we have. */

#include "remote/cell.h"

#include "base/fd.h"
#include "cli/report.h"
#include "remote/notes.h"
#include "remote/value.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES (1u << 20)
#define TRIES          5 /* servers in a row that die before they tell anything */

/* ---- what is said meanwhile ---- */

/* The cell whose events are the argument. */
static struct cell *cell_of(void *arg) {
    const struct events *ev = arg;
    return ev->arg;
}

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
    struct cell *c = cell_of(arg);
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
    const struct cell *c = cell_of(arg);
    return c->waits && events_is_written(&c->events) ? STDIN_FILENO : -1;
}

static int on_input(void *arg, struct err *e) {
    struct cell *c = cell_of(arg);
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

static int remote_cell_on_output(struct cell *c, const json_t *event, int fd, struct err *e) {
    const json_t *data = json_object_get(event, "data");
    if (!json_is_string(data))
        return err_user(e, "bad_reply", "the server sent an output event without output");
    events_print(&c->events, fd, json_string_value(data), json_string_length(data));
    return 0;
}

static void on_value(struct cell *c, const json_t *event) {
    const json_t *bundle = json_object_get(event, "data");
    const json_t *text = json_object_get(bundle, "text/plain");
    struct err why;
    events_print(&c->events, STDOUT_FILENO, "", 0);
    int rc = images_show(c->images, bundle, &c->events.output, &why);
    if (rc < 0)
        report_say(why.text);
    if (rc > 0 || !json_is_string(text))
        return;
    events_add(&c->events, json_string_value(text), json_string_length(text));
    events_add(&c->events, "\n", 1);
}

static void remote_cell_on_error(struct cell *c, const json_t *event) {
    bool coloured = isatty(STDERR_FILENO);
    const char *name = value_text(event, "name");
    const json_t *line;
    size_t i;
    events_print(&c->events, STDERR_FILENO, "", 0);
    json_array_foreach(json_object_get(event, "traceback"), i, line) {
        const char *text = json_string_value(line);
        if (!text)
            continue;
        bool is_red = coloured && *name && strncmp(text, name, strlen(name)) == 0;
        buf_addf(&c->events.output, "%s", is_red ? "\033[31m" : "");
        events_add(&c->events, text, json_string_length(line));
        buf_addf(&c->events.output, "%s\n", is_red ? "\033[0m" : "");
    }
    if (i == 0) {
        AUTO_BUF text = BUF_INIT;
        buf_addf(&text, "%s: %s\n", name, value_text(event, "value"));
        events_add(&c->events, text.data, text.len);
    }
}

static void on_question(struct cell *c, const json_t *event) {
    const json_t *prompt = json_object_get(event, "prompt");
    events_print(&c->events, STDOUT_FILENO, json_is_string(prompt) ? json_string_value(prompt) : "",
                 json_string_length(prompt));
    if (json_is_true(json_object_get(event, "password")))
        hide_typing(c);
    buf_clear(&c->line);
    c->waits = true;
}

static void remote_cell_on_start(struct cell *c, const json_t *event) {
    const char *id = value_text(event, "id");
    if (*id && strlen(id) < sizeof c->id && !strpbrk(id, "/?#% "))
        memcpy(c->id, id, strlen(id) + 1);
}

static int cell_on_event(void *arg, const char *name, json_t *event, struct err *e) {
    struct cell *c = arg;
    c->seen = c->events.sse.id;
    if (strcmp(name, "stdout") == 0)
        return remote_cell_on_output(c, event, STDOUT_FILENO, e);
    if (strcmp(name, "stderr") == 0)
        return remote_cell_on_output(c, event, STDERR_FILENO, e);
    if (strcmp(name, "start") == 0)
        remote_cell_on_start(c, event);
    else if (strcmp(name, "result") == 0 || strcmp(name, "display") == 0)
        on_value(c, event);
    else if (strcmp(name, "error") == 0)
        remote_cell_on_error(c, event);
    else if (strcmp(name, "input") == 0)
        on_question(c, event);
    else if (strcmp(name, "clear") == 0 && isatty(STDOUT_FILENO))
        events_print(&c->events, STDOUT_FILENO, "\033[2K\r", 5);
    else if (strcmp(name, "end") == 0) {
        c->end = json_incref(event);
        c->events.over = true;
    } else if (strcmp(name, "failed") == 0) {
        remote_error(json_object_get(event, "error"), &c->cmd->refused);
        c->failed = c->events.over = true;
    }
    return 0;
}

static int follow_cell(struct cell *c, const char *method, const char *path, const struct buf *body,
                       struct remote_reply *reply, struct err *e) {
    c->events.fn = cell_on_event;
    c->events.arg = c;
    struct remote_sink sink = events_sink(&c->events);
    sink.input_fd = input_fd;
    sink.on_input = on_input;
    sink.on_signal = cell_on_signal;
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
        events_resume(&c->events);
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
    if (reply.signal || c->events.unread)
        kill_command(c);
    if (rc < 0)
        return -1;
    if (c->events.broken) {
        *e = c->events.why;
        return -1;
    }
    if (c->failed)
        return err_user(e, "refused", "the server failed");
    if (reply.signal || (reply.status && reply.status / 100 != 2))
        return sandbox_cmd_refused(c->cmd, &reply, e);
    if (!c->events.over)
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
    if (c->events.unread)
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
    events_reset(&c->events);
    buf_clear(&c->line);
    c->id[0] = '\0';
    c->seen = 0;
    c->failed = c->waits = false;
    c->signals = 0;
}

void cell_done(struct cell *c) {
    json_decref(c->end);
    events_done(&c->events);
    buf_done(&c->line);
}
