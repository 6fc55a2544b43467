/* See client.h.
 *
 * One poll loop, nothing blocks but the disk. At most one message waits to be sent and at most one
 * that has arrived waits to be written out: while output waits for our stdout we take no further
 * message (so a slow reader slows the program down, through the engine), and while the socket is
 * full we do not read our stdin. Signals are looked at all the time.
 *
 *   sending:   inputs → run → signals and stdin, in the order in which they come
 *   receiving: (started) output* file* result | error */

#include "cli/client.h"

#include "base/fd.h"
#include "base/outdir.h"
#include "cli/input.h"
#include "cli/report.h"
#include "cli/screen.h"
#include "wire/codec.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define STDIN_CHUNK 32768

enum phase { PHASE_INPUTS, PHASE_RUN, PHASE_OPEN };

struct session {
    const struct client_job *job;
    struct client_outcome *outcome;
    bool over;

    enum phase phase;
    unsigned next_input;
    struct wire_out out;
    bool out_waits;  /* `out` is to be sent */
    bool mute;       /* nobody takes our messages any more */
    uint32_t signal; /* to be sent, or 0 */
    unsigned interrupts;
    bool started, stdin_open;
    size_t stdin_room; /* bytes that the engine still takes */

    struct wire_in in;
    struct screen screens[2];
    struct buf shown;   /* what may be shown of the output that came last */
    const char *output; /* into `shown`: what is not written yet */
    size_t output_len;
    int output_fd;
};

static void leave(struct session *s, enum client_end end, uint32_t status) {
    s->outcome->end = end;
    s->outcome->status = status;
    s->over = true;
}

/* Sending. */

static bool next_message(struct session *s) {
    const struct client_job *j = s->job;
    if (s->phase == PHASE_INPUTS && s->next_input < j->ninputs) {
        const struct input *i = &j->inputs[s->next_input++];
        c_input_put(&s->out, &(struct c_input){.path = i->path, .mode = i->mode, .file = i->fd});
        return true;
    }
    if (s->phase == PHASE_INPUTS && j->network) {
        c_network_put(&s->out, &(struct c_network){.rules = j->network});
        s->phase = PHASE_RUN;
        return true;
    }
    if (s->phase < PHASE_OPEN) {
        run_put(&s->out, WIRE_C_RUN, j->run);
        s->phase = PHASE_OPEN;
        return true;
    }
    if (s->signal) {
        c_signal_put(&s->out, &(struct c_signal){.signal = s->signal});
        s->signal = 0;
        return true;
    }
    return false;
}

/* As much as the socket takes. A peer that is gone may have said why: we still read. */
static int send_some(struct session *s, struct err *e) {
    while (!s->mute && (s->out_waits || next_message(s))) {
        s->out_waits = true;
        if (s->out.bad)
            return err_user(e, "too_large",
                            "arguments and environment together have more than %d bytes", WIRE_MAX);
        switch (wire_send(s->job->sock, &s->out, e)) {
        case WIRE_SENT:
            s->out_waits = false;
            break;
        case WIRE_AGAIN:
            return 0;
        case WIRE_FAILED:
            if (e->code != EPIPE && e->code != ECONNRESET)
                return -1;
            s->mute = true;
            break;
        }
    }
    return 0;
}

static void read_stdin(struct session *s) {
    char chunk[STDIN_CHUNK];
    size_t most = s->stdin_room < sizeof chunk ? s->stdin_room : sizeof chunk;
    ssize_t n = read(STDIN_FILENO, chunk, most);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        n = 0;
        s->stdin_open = false;
    }
    s->stdin_room -= (size_t)n;
    c_stdin_put(&s->out, &(struct c_stdin){.data = {chunk, (size_t)n}});
    s->out_waits = true;
}

static void take_signal(struct session *s) {
    struct signalfd_siginfo info;
    if (read(s->job->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    s->interrupts += info.ssi_signo == SIGINT;
    if (!s->started || s->interrupts > 2)
        leave(s, CLIENT_LEFT, 128 + info.ssi_signo);
    else
        s->signal = s->interrupts == 2 ? SIGKILL : info.ssi_signo;
}

/* Receiving. */

static int client_on_output(struct session *s, struct err *e) {
    struct c_output m;
    if (c_output_get(&s->in, &m, e) < 0)
        return -1;
    if (m.stream != STDOUT_FILENO && m.stream != STDERR_FILENO)
        return err_set(e, EPROTO, "C_OUTPUT: stream %u", m.stream);
    if (s->job->run->flags & RUN_QUIET)
        return 0;
    buf_clear(&s->shown);
    s->output_fd = (int)m.stream;
    screen_add(&s->screens[m.stream == STDERR_FILENO], s->output_fd, &s->shown, m.data.data,
               m.data.len);
    s->output = s->shown.data;
    s->output_len = s->shown.len;
    return 0;
}

static int client_on_file(struct session *s, struct err *e) {
    struct c_file m;
    if (c_file_get(&s->in, &m, e) < 0)
        return -1;
    return s->job->out ? outdir_write(s->job->out, m.path, m.file, m.size, e) : 0;
}

static int on_started(struct session *s, struct err *e) {
    struct c_started m;
    if (c_started_get(&s->in, &m, e) < 0)
        return -1;
    s->started = true;
    if (s->job->verbose) {
        AUTO_BUF line = BUF_INIT;
        buf_addf(&line, "started %s", m.id);
        report_say(line.data);
    }
    return 0;
}

static int client_on_result(struct session *s, struct err *e) {
    struct c_result m;
    if (c_result_get(&s->in, &m, e) < 0)
        return -1;
    if (m.status > 255)
        return err_set(e, EPROTO, "C_RESULT: exit status %u", m.status);
    buf_adds(&s->outcome->why, m.why);
    buf_add(&s->outcome->json, m.json.data, m.json.len);
    if (m.file >= 0)
        s->outcome->json_fd = wire_keep(&s->in, m.file);
    leave(s, CLIENT_RESULT, m.status);
    return s->job->out ? outdir_open(s->job->out, e) : 0;
}

static int client_on_error(struct session *s, struct err *e) {
    struct c_error m;
    if (c_error_get(&s->in, &m, e) < 0)
        return -1;
    buf_adds(&s->outcome->kind, m.kind);
    buf_adds(&s->outcome->message, m.message);
    buf_adds(&s->outcome->remediation, m.remedy);
    s->outcome->retryable = m.retryable != 0;
    leave(s, CLIENT_REFUSED, 0);
    return 0;
}

static int handle(struct session *s, struct err *e) {
    /* The other types are not for us. */
    enum wire_type type = s->in.type;
    if (type == WIRE_C_OUTPUT)
        return client_on_output(s, e);
    if (type == WIRE_C_FILE)
        return client_on_file(s, e);
    if (type == WIRE_C_STARTED)
        return on_started(s, e);
    if (type == WIRE_C_WANT) {
        struct c_want m;
        int r = c_want_get(&s->in, &m, e);
        s->stdin_room += m.bytes;
        return r;
    }
    if (type == WIRE_C_RESULT)
        return client_on_result(s, e);
    if (type == WIRE_C_ERROR)
        return client_on_error(s, e);
    return err_set(e, EPROTO, "the engine sent %s", wire_type_name(type));
}

static int receive(struct session *s, struct err *e) {
    switch (wire_recv(s->job->sock, &s->in, e)) {
    case WIRE_GOT: {
        int rc = handle(s, e);
        wire_in_done(&s->in);
        return rc;
    }
    case WIRE_NONE:
        return 0;
    case WIRE_EOF:
        buf_adds(&s->outcome->why, s->started ? "the engine went away while the program ran"
                                              : "the engine went away before the program started");
        leave(s, CLIENT_LOST, 0);
        return 0;
    case WIRE_BAD:
        return -1;
    }
    return 0;
}

/* No more at once than a pipe takes without blocking, once poll says that it takes any. */
static int write_output(struct session *s, struct err *e) {
    size_t most = s->output_len < PIPE_BUF ? s->output_len : PIPE_BUF;
    ssize_t n = write(s->output_fd, s->output, most);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n < 0 && errno == EPIPE) {
        leave(s, CLIENT_LEFT, 128 + SIGPIPE); /* as a program of this shell would */
        return 0;
    }
    if (n < 0)
        return err_user(e, "output_failed", "cannot write the program's output: %s",
                        strerror(errno));
    s->output += n;
    s->output_len -= (size_t)n;
    return 0;
}

static int step(struct session *s, struct err *e) {
    if (send_some(s, e) < 0)
        return -1;
    bool sending = s->out_waits && !s->mute;
    short want = (short)((s->output_len ? 0 : POLLIN) | (sending ? POLLOUT : 0));
    bool reads_stdin =
        s->stdin_open && s->stdin_room && s->phase == PHASE_OPEN && !s->out_waits && !s->mute;
    struct pollfd p[] = {
        {.fd = want ? s->job->sock : -1, .events = want},
        {.fd = s->job->signals, .events = POLLIN},
        {.fd = reads_stdin ? STDIN_FILENO : -1, .events = POLLIN},
        {.fd = s->output_len ? s->output_fd : -1, .events = POLLOUT},
    };
    if (poll(p, 4, -1) < 0)
        return errno == EINTR ? 0 : err_sys(e, "poll");
    if (p[1].revents)
        take_signal(s);
    if (p[3].revents && !s->over)
        return write_output(s, e);
    if (p[2].revents && !s->over)
        read_stdin(s);
    if (p[0].revents & (POLLIN | POLLHUP | POLLERR) && !s->output_len && !s->over)
        return receive(s, e);
    return 0;
}

int client_run(const struct client_job *job, struct client_outcome *ret, struct err *e) {
    if (fd_set_nonblock(job->sock, e) < 0)
        return -1;
    struct session *s = xcalloc(1, sizeof *s);
    s->job = job;
    s->outcome = ret;
    s->shown = (struct buf)BUF_INIT;
    s->stdin_open = (job->run->flags & RUN_STDIN) != 0;
    s->stdin_room = RUN_STDIN_WINDOW;
    int rc = 0;
    while (rc == 0 && !s->over)
        rc = step(s, e);
    wire_in_done(&s->in);
    buf_done(&s->shown);
    ptr_free(&s);
    return rc;
}

void client_outcome_done(struct client_outcome *o) {
    buf_done(&o->why);
    buf_done(&o->json);
    buf_done(&o->kind);
    buf_done(&o->message);
    buf_done(&o->remediation);
    fd_close(&o->json_fd);
}
