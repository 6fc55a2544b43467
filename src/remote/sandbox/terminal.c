/* `cloche sandbox shell`: a command at a terminal there, our terminal here, a WebSocket between.
 * What is typed goes as binary messages, the terminal's size as JSON; what comes is printed. Our
 * terminal is raw meanwhile and as it was after, however this ends. */

#include "remote/sandbox/terminal.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/url.h"
#include "remote/net/wsclient.h"
#include "remote/sandbox/manage.h"
#include "remote/sandbox/sandbox_cmd.h"
#include "remote/value.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#define QUEUE_MAX (1u << 20) /* bytes typed or pasted that wait for the server */

struct terminal {
    struct sandbox_cmd *cmd; /* borrowed */
    struct wsclient *ws;     /* owned */
    struct termios before;
    bool is_raw, input_over;
    json_t *end; /* owned: how the command ended, or NULL */
    int failed;  /* errno of our stdout, or 0 */
};

static struct winsize get_size(void) {
    struct winsize s = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &s) < 0 || !s.ws_row || !s.ws_col)
        s = (struct winsize){.ws_row = 24, .ws_col = 80};
    return s;
}

static int set_raw(struct terminal *t, struct err *e) {
    if (tcgetattr(STDIN_FILENO, &t->before) < 0)
        return err_sys(e, "the terminal");
    struct termios raw = t->before;
    cfmakeraw(&raw);
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
        return err_sys(e, "the terminal");
    t->is_raw = true;
    return 0;
}

static void set_back(struct terminal *t) {
    if (t->is_raw)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &t->before);
    t->is_raw = false;
}

static void send_size(struct terminal *t) {
    struct winsize s = get_size();
    AUTO_BUF text = BUF_INIT;
    struct jw j = JW_INIT(&text);
    jw_object(&j);
    jw_key_str(&j, "type", "resize");
    jw_key_uint(&j, "rows", s.ws_row);
    jw_key_uint(&j, "cols", s.ws_col);
    jw_object_end(&j);
    wsclient_send(t->ws, true, text.data, text.len);
}

static void terminal_on_message(void *arg, bool is_text, const char *data, size_t len) {
    struct terminal *t = arg;
    struct err e;
    json_error_t ignored;
    if (!is_text) {
        if (!t->failed && fd_write_all(STDOUT_FILENO, data, len, &e) < 0)
            t->failed = e.code;
        return;
    }
    json_t *root = json_loadb(data, len, JSON_ALLOW_NUL, &ignored);
    if (!t->end && strcmp(value_text(root, "type"), "end") == 0)
        t->end = json_incref(root);
    json_decref(root);
}

static void read_typed(struct terminal *t) {
    char data[4096];
    ssize_t n = read(STDIN_FILENO, data, sizeof data);
    if (n > 0)
        wsclient_send(t->ws, false, data, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        t->input_over = true;
}

static int terminal_on_signal(struct terminal *t, struct err *e) {
    struct signalfd_siginfo info;
    if (read(t->cmd->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return 0;
    if (info.ssi_signo == SIGWINCH) {
        send_size(t);
        return 0;
    }
    t->cmd->signal = (int)info.ssi_signo;
    return err_user(e, "interrupted", "interrupted");
}

/* 1: it is over. */
static int step(struct terminal *t, struct err *e) {
    bool reads = !t->input_over && wsclient_queued(t->ws) < QUEUE_MAX;
    short events = (short)(POLLIN | (wsclient_wants_write(t->ws) ? POLLOUT : 0));
    struct pollfd p[] = {{.fd = wsclient_fd(t->ws), .events = events},
                         {.fd = t->cmd->signals, .events = POLLIN},
                         {.fd = reads ? STDIN_FILENO : -1, .events = POLLIN}};
    if (poll(p, 3, -1) < 0)
        return errno == EINTR ? 0 : err_sys(e, "poll");
    if (p[1].revents && terminal_on_signal(t, e) < 0)
        return -1;
    if (p[2].revents)
        read_typed(t);
    int rc = wsclient_pump(t->ws, e);
    if (t->end)
        return 1;
    if (t->failed)
        return err_user(e, "output_failed", "cannot write the output: %s", strerror(t->failed));
    return rc == 1 ? err_user(e, "engine_gone", "the server closed the connection") : rc;
}

static int end_status(const json_t *end) {
    const json_t *code = json_object_get(end, "exit_code");
    json_int_t signal = json_integer_value(json_object_get(end, "signal"));
    if (json_is_true(json_object_get(end, "timed_out")))
        return 124;
    if (signal > 0)
        return 128 + (int)(signal & 127);
    return json_is_integer(code) ? (int)(json_integer_value(code) & 255) : 0;
}

static int sit(struct terminal *t, const char *path, struct err *e) {
    const struct wsclient_events events = {t, terminal_on_message};
    AUTO_REPLY reply = REMOTE_REPLY_INIT;
    int rc = wsclient_open(t->cmd->r, path, &events, &t->ws, &reply, e);
    if (rc < 0)
        return -1;
    if (rc == 0)
        return sandbox_cmd_refused(t->cmd, &reply, e);
    if (set_raw(t, e) < 0)
        return -1;
    send_size(t); /* it may have changed since */
    while ((rc = wsclient_pump(t->ws, e)) == 0 && (rc = step(t, e)) == 0)
        ;
    if (!t->end)
        return rc < 0 ? -1 : err_user(e, "engine_gone", "the server closed the connection");
    t->cmd->status = end_status(t->end);
    return 0;
}

int sandbox_terminal(struct sandbox_cmd *b, struct err *e) {
    struct terminal t = {.cmd = b};
    struct winsize size = get_size();
    AUTO_BUF path = BUF_INIT;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return err_user(e, "no_terminal", "sandbox shell: stdin and stdout must be a terminal");
    if (sandbox_find(b, &path, e) < 0)
        return -1;
    buf_addf(&path, "/commands/pty?rows=%u&cols=%u", size.ws_row, size.ws_col);
    if (b->o.cwd) {
        buf_adds(&path, "&cwd=");
        url_encode(&path, b->o.cwd, "");
    }
    int rc = sit(&t, path.data, e);
    set_back(&t);
    wsclient_free(t.ws);
    json_decref(t.end);
    return rc;
}
