/* See pump.h.
 *
 * One loop: libcurl's transfers, stdin, stdout, signals. Each line of stdin becomes a request of
 * its own at once, so that answers and cancellations need not wait for each other. While the client
 * does not read, nothing more is taken from the server. The end: stdin has ended and every request
 * has its answer; nobody reads stdout; a signal. */

#include "remote/mcp/pump.h"

#include "base/fd.h"
#include "cli/report.h"
#include "remote/mcp/call.h"
#include "remote/mcp/host_files.h"
#include "remote/net/server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define CHUNK  65536
#define WRITES 64 /* in a row, of a pipe's least room each */

void pump_answer_error(struct pump *p, const json_t *id, int code, const char *text) {
    AUTO_BUF line = BUF_INIT;
    message_error(&line, id, code, text);
    out_line(&p->out, line.data, line.len);
}

/* ---- the client's messages ---- */

static void take_too_long(struct pump *p, const char *id) {
    AUTO_BUF line = BUF_INIT;
    char text[120];
    snprintf(text, sizeof text,
             "the message has more than %u bytes, which is the most; send files another way",
             LINE_MAX_BYTES);
    message_error_of(&line, id, MCP_INVALID, text);
    out_line(&p->out, line.data, line.len);
}

static void take_line(struct pump *p, const char *line, size_t len) {
    struct err e;
    AUTO_MESSAGE m = {0};
    if (message_read(line, len, &m, &e) < 0) {
        pump_answer_error(p, NULL, MCP_PARSE_ERROR, e.text);
        return;
    }
    if (strcmp(m.method, "notifications/cancelled") == 0 && call_cancel(p, &m))
        return;
    if (p->files && host_files_take(p->files, p, &m))
        return;
    call_start(p, &m, line, len);
}

static void read_stdin(struct pump *p) {
    char chunk[CHUNK];
    const char *line;
    size_t len;
    ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    p->eof = n <= 0;
    if (n > 0)
        lines_add(&p->lines, chunk, (size_t)n);
    else
        lines_end(&p->lines);
    for (enum line_got got; (got = lines_next(&p->lines, &line, &len)) != LINE_NONE;) {
        if (got == LINE_GOT)
            take_line(p, line, len);
        else
            take_too_long(p, line);
    }
}

/* ---- the loop ---- */

static bool has(int fd, short events) {
    struct pollfd q = {.fd = fd, .events = events};
    return fd >= 0 && poll(&q, 1, 0) > 0;
}

static void take_signal(struct pump *p) {
    struct signalfd_siginfo info;
    if (read(p->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    p->signal = (int)info.ssi_signo;
    p->over = true;
}

/* Waits for whatever comes first. stdout is looked at all the time: its reader may go. */
static int wait_for_more(struct pump *p, struct err *e) {
    bool reads = !p->eof && out_waits(&p->out) <= OUT_FULL;
    const struct curl_waitfd all[] = {
        {.fd = p->signals, .events = CURL_WAIT_POLLIN},
        {.fd = p->own, .events = CURL_WAIT_POLLIN},
        {.fd = reads ? STDIN_FILENO : -1, .events = CURL_WAIT_POLLIN},
        {.fd = STDOUT_FILENO, .events = out_waits(&p->out) ? CURL_WAIT_POLLOUT : 0}};
    struct curl_waitfd some[4];
    unsigned n = 0;
    for (size_t i = 0; i < 4; i++)
        if (all[i].fd >= 0)
            some[n++] = all[i];
    CURLMcode code = curl_multi_poll(p->remote->multi, some, n, 1000, NULL);
    if (code != CURLM_OK)
        return err_set(e, EIO, "wait for the server: %s", curl_multi_strerror(code));
    /* Asked of the kernel itself: libcurl does not report an error on another's descriptor. */
    if (has(p->signals, POLLIN)) {
        take_signal(p);
        return 0;
    }
    if (has(p->own, POLLIN))
        return err_user(e, "engine_gone", "the server that this process had started has ended");
    p->out.closed |= !out_waits(&p->out) && has(STDOUT_FILENO, 0);
    for (int i = 0; i < WRITES && out_waits(&p->out) && has(STDOUT_FILENO, POLLOUT); i++)
        if (out_write(&p->out, e) < 0)
            return -1;
    if (reads && has(STDIN_FILENO, POLLIN))
        read_stdin(p);
    return 0;
}

int pump_run(struct pump *p, struct err *e) {
    p->flights.remote = p->remote;
    for (;;) {
        if (flights_step(&p->flights, e) < 0)
            return -1;
        if (p->over || p->out.closed || (p->eof && !call_any_waits(p) && !out_waits(&p->out)))
            return 0;
        if (wait_for_more(p, e) < 0)
            return -1;
        if (out_waits(&p->out) <= OUT_FULL)
            flights_resume(&p->flights);
    }
}

void pump_done(struct pump *p) {
    flights_drop_all(&p->flights);
    lines_done(&p->lines);
    out_done(&p->out);
}
