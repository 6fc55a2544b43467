/* Commands in a live sandbox: processes that enter it as kernels do, and become another program
 * there instead of running cells. One that is over stays in the list, with what is kept of its
 * output, until it is deleted or others need the room. */

#include "engine/live/internal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "engine/core/warnings.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_RUNNING 32
#define MAX_OVER    64          /* that are remembered */
#define MAX_KEPT    (32u << 20) /* bytes of output of those */
#define STDIN_MAX   (1u << 20)  /* bytes that wait for the program to read */
#define SCREEN_MAX  (64u << 10) /* bytes that are kept of a terminal, for who sits down at it */

static const char *const status_words[] = {"running", "exited", "killed", "timeout"};

/* What a shell expects to find, but for PATH, which the sandbox's profile has; the sandbox's and
 * the request's come on top. */
static const char usual_env[] = "{\"HOME\":\"/tmp\","
                                "\"USER\":\"user\",\"LANG\":\"C.UTF-8\",\"SHELL\":\"/bin/sh\"}";

void command_request_done(struct command_request *q) {
    for (char **at = q->argv; at && *at; at++)
        free(*at);
    free(q->argv);
    free(q->env);
    free(q->shown);
    free(q->cwd);
    free(q->stdin_data);
    *q = (struct command_request){0};
}

static void free_now(struct deferred *d) {
    struct command *c = d->arg;
    command_request_done(&c->req);
    output_free(&c->out[0]);
    output_free(&c->out[1]);
    buf_done(&c->stdin_data);
    free(c);
}

static struct loop *loop_of(const struct command *c) {
    return c->live->engine->loop;
}

/* ---- its output ---- */

static void emit(struct command *c, int stream, const struct buf *text) {
    AUTO_BUF json = BUF_INIT;
    live_said(c->live);
    if (text->len == 0 || !c->cb.on_event)
        return;
    utf8_stream_json(text, &json);
    c->cb.on_event(c->cb.arg, stream == 0 ? "stdout" : "stderr", &json);
}

static void on_data(struct output *o, const void *data, size_t len) {
    struct command *c = o->arg;
    int stream = o == &c->out[0] ? 0 : 1;
    AUTO_BUF text = BUF_INIT;
    if (c->cb.on_bytes)
        c->cb.on_bytes(c->cb.arg, data, len);
    utf8_stream_add(&c->utf8[stream], data, len, &text);
    emit(c, stream, &text);
}

static void watch_output(struct command *c, int stream, int fd) {
    struct err e;
    struct output *o = &c->out[stream];
    o->arg = c;
    o->on_data = on_data;
    o->is_terminal = fd == c->terminal;
    output_begin(o, loop_of(c), fd, o->is_terminal ? SCREEN_MAX : c->req.output_bytes, &e);
}

/* ---- its input ---- */

static int stdin_fd(const struct command *c) {
    return c->req.rows ? c->terminal : c->process.fds[0];
}

static void close_stdin(struct command *c) {
    loop_unwatch(loop_of(c), &c->stdin_watch);
    c->stdin_closed = true;
    process_close_stdin(&c->process);
}

static void pump_stdin(struct command *c) {
    struct err e;
    int fd = stdin_fd(c);
    while (fd >= 0 && c->stdin_at < c->stdin_data.len) {
        ssize_t n = write(fd, c->stdin_data.data + c->stdin_at, c->stdin_data.len - c->stdin_at);
        if (n < 0 && errno == EAGAIN) {
            if (c->stdin_watch.fd < 0)
                loop_watch(loop_of(c), &c->stdin_watch, fd, EPOLLOUT, &e);
            return;
        }
        if (n < 0) { /* nobody reads any more */
            close_stdin(c);
            break;
        }
        c->stdin_at += (size_t)n;
    }
    if (fd < 0)
        return;
    buf_clear(&c->stdin_data);
    c->stdin_at = 0;
    loop_unwatch(loop_of(c), &c->stdin_watch);
    if (c->stdin_closed)
        process_close_stdin(&c->process);
}

static void on_stdin(struct watch *w, uint32_t events) {
    (void)events;
    pump_stdin(w->arg);
}

/* ---- the process ---- */

static void merge_env(json_t *all, const char *more) {
    json_auto_t *other = more ? json_loads(more, 0, NULL) : NULL;
    if (other)
        json_object_update(all, other);
}

static void put_env(struct wire_out *o, const struct command *c) {
    json_auto_t *all = json_loads(usual_env, 0, NULL);
    const char *key;
    json_t *value;
    if (c->req.rows)
        json_object_set_new(all, "TERM", json_string("xterm-256color"));
    merge_env(all, c->live->req.env);
    merge_env(all, c->req.env);
    wire_put_u32(o, (uint32_t)json_object_size(all));
    json_object_foreach(all, key, value) {
        AUTO_BUF pair = BUF_INIT;
        buf_addf(&pair, "%s=%s", key, json_string_value(value));
        wire_put_str(o, pair.data);
    }
}

static void begin(struct command *c) {
    const struct config_limits *l = &c->live->req.limits;
    struct wire_out o;
    uint32_t n = 0;
    wire_begin(&o, WIRE_K_EXEC);
    wire_put_u32(&o, l->open_files);
    wire_put_u32(&o, cgroup_fds_there(c->live->sandbox->cgroup) ? 0 : l->pids);
    wire_put_u32(&o, c->req.rows);
    wire_put_u32(&o, c->req.columns);
    wire_put_str(&o, c->req.cwd);
    for (char **at = c->req.argv; *at; at++)
        n++;
    wire_put_u32(&o, n);
    for (char **at = c->req.argv; *at; at++)
        wire_put_str(&o, *at);
    put_env(&o, c);
    if (c->req.rows)
        wire_put_fd(&o, c->terminal);
    if (o.bad) {
        snprintf(c->why, sizeof c->why, "its arguments and environment are too long");
        process_kill(&c->process);
        return;
    }
    chan_send(c->process.ctl, &o);
    memory_wake(c->live->engine);
}

/* A terminal went with the server that had it: the command hears of that, and ends. */
static void on_resumed(void *owner) {
    struct command *c = owner;
    if (!c->begun) {
        process_kill(&c->process);
        return;
    }
    watch_output(c, 1, c->process.fds[2]);
    if (c->req.rows) {
        c->stdin_closed = true;
        return;
    }
    watch_output(c, 0, c->process.fds[1]);
    pump_stdin(c); /* what was not written yet is lost, but not that it ends */
}

/* The terminal's other end is ours alone: the process has it only until it executes. */
static void on_terminal(void *arg, struct wire_in *in) {
    struct command *c = arg;
    struct err e;
    if (in && in->type == WIRE_I_REPLY)
        c->terminal = wire_take_fd(in);
    if (c->terminal >= 0 && isatty(c->terminal) && fd_set_nonblock(c->terminal, &e) == 0) {
        watch_output(c, 0, c->terminal);
        pump_stdin(c);
        begin(c);
        return;
    }
    snprintf(c->why, sizeof c->why, "no terminal could be opened for it");
    process_kill(&c->process);
}

static void ask_terminal(struct command *c) {
    struct wire_out o;
    wire_begin(&o, WIRE_I_TTY);
    if (!live_ask(c->live, &o, on_terminal, c))
        on_terminal(c, NULL);
}

static void on_ready(void *owner) {
    struct command *c = owner;
    AUTO_BUF json = BUF_INIT;
    c->started_ns = now_ns();
    network_attempts_begin(&c->network, c->live);
    watch_output(c, 1, c->process.fds[2]);
    if (!c->req.rows) {
        watch_output(c, 0, c->process.fds[1]);
        pump_stdin(c);
    }
    if (c->req.timeout_ms)
        loop_timer(loop_of(c), &c->timer, c->started_ns + (uint64_t)c->req.timeout_ms * 1000000u);
    buf_addf(&json, "{\"id\":\"%s\"}", c->id);
    live_said(c->live);
    if (c->cb.on_event)
        c->cb.on_event(c->cb.arg, "start", &json);
    if (c->req.rows)
        ask_terminal(c);
    else
        begin(c);
    live_changed(c->live);
}

/* It lets go of its control socket when it becomes the program that was asked for. */
static void on_hung_up(void *owner) {
    struct command *c = owner;
    c->has_begun = true;
    for (int sig = 1; sig < 32; sig++) {
        if (c->signals & 1u << sig)
            process_signal(&c->process, sig, SIGNAL_GROUP);
    }
    c->signals = 0;
}

static void on_frame(void *owner, struct wire_in *in) {
    struct command *c = owner;
    if (in->type == WIRE_K_BROKEN) {
        snprintf(c->why, sizeof c->why, "%s", wire_get_str(in, sizeof c->why - 1));
        return;
    }
    process_kill(&c->process);
}

static void on_dying(void *owner) {
    struct command *c = owner;
    for (int i = 0; i < 2; i++) {
        output_drain(&c->out[i]);
        output_end(&c->out[i]);
        AUTO_BUF text = BUF_INIT;
        utf8_stream_end(&c->utf8[i], &text);
        emit(c, i, &text);
    }
    loop_unwatch(loop_of(c), &c->stdin_watch);
}

static void unlink_command(struct command *c) {
    for (struct command **at = &c->live->commands; *at; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            break;
        }
    }
}

/* Before they are closed: the warden may hold them, too, and then closing ends no watch. */
static void stop_watching(struct command *c) {
    loop_unwatch(loop_of(c), &c->stdin_watch);
    output_end(&c->out[0]);
    output_end(&c->out[1]);
}

static void forget(struct command *c) {
    unlink_command(c);
    loop_timer_stop(loop_of(c), &c->timer);
    stop_watching(c);
    process_done(&c->process);
    fd_close(&c->terminal);
    loop_defer(loop_of(c), &c->free_later);
}

/* Those that are over, the oldest first, until the rest is not too much. */
static void tidy(struct live *l) {
    unsigned n = 0;
    size_t bytes = 0;
    for (const struct command *c = l->commands; c; c = c->next) {
        n += c->status != COMMAND_RUNNING;
        bytes += output_len(&c->out[0]) + output_len(&c->out[1]);
    }
    for (struct command *c = l->commands, *next; c && (n > MAX_OVER || bytes > MAX_KEPT);
         c = next) {
        next = c->next;
        if (c->status == COMMAND_RUNNING || !next) /* nor the one that has just ended */
            continue;
        n--;
        bytes -= output_len(&c->out[0]) + output_len(&c->out[1]);
        forget(c);
    }
}

/* Those of its sandbox: others in it may have met them, too. */
static enum limit_kind which_limit(const struct command *c) {
    const struct sandbox *s = c->live->sandbox;
    if (c->status == COMMAND_TIMEOUT)
        return LIMIT_TIME;
    if (s && cgroup_fds_pids_refused(s->cgroup) > c->pids_refused)
        return LIMIT_PIDS;
    return s && sandbox_is_full(s) ? LIMIT_DISK : LIMIT_NONE;
}

static void over(struct command *c, enum command_status status) {
    c->ended_ns = now_ns();
    c->status = status;
    network_attempts_end(&c->network, c->live, &c->denied);
    live_unask(c->live, c);
    c->limit = which_limit(c);
    c->stdin_closed = true;
    loop_timer_stop(loop_of(c), &c->timer);
    fd_close(&c->terminal);
    struct live *l = c->live;
    live_said(l);
    live_changed(l);
    if (l->engine->on_command)
        l->engine->on_command(l->engine->command_arg, l, c);
    if (c->cb.on_done)
        c->cb.on_done(c->cb.arg, c);
    if (c->deleted)
        forget(c);
    tidy(l);
    live_release(l);
}

/* A shell tells of such a death by its exit code. */
static void explain_kill(struct command *c) {
    const struct live *l = c->live;
    if (c->exit_code == 128 + SIGKILL && !c->called_off && l->sandbox &&
        cgroup_fds_kills(l->sandbox->cgroup) > c->kills)
        snprintf(c->why, sizeof c->why, "the sandbox needed more than its %u MB of memory",
                 l->req.limits.memory_mb);
}

static void on_end(void *owner, int status, const char *why) {
    struct command *c = owner;
    enum command_status how = COMMAND_EXITED;
    if (why && !c->why[0])
        snprintf(c->why, sizeof c->why, "%s", why);
    if (c->started_ns == 0)
        c->started_ns = now_ns();
    if (c->why[0]) {
        c->exit_code = 126;
        how = COMMAND_KILLED;
    } else if (WIFSIGNALED(status)) {
        c->signal = WTERMSIG(status);
        c->exit_code = 128 + c->signal;
        how = COMMAND_KILLED;
    } else {
        c->exit_code = WEXITSTATUS(status);
    }
    if (!c->why[0])
        explain_kill(c);
    over(c, c->called_off ? COMMAND_TIMEOUT : how);
}

static struct denials *denied(void *owner) {
    struct command *c = owner;
    return &c->denied;
}

static const struct process_kind kind = {.on_ready = on_ready,
                                         .on_resumed = on_resumed,
                                         .on_frame = on_frame,
                                         .on_hung_up = on_hung_up,
                                         .on_dying = on_dying,
                                         .denied = denied,
                                         .on_end = on_end};

static void on_timer(struct timer *t) {
    struct command *c = t->arg;
    c->called_off = true;
    process_kill(&c->process);
}

void commands_ended_with(struct live *l) {
    while (l->commands) {
        struct command *c = l->commands;
        snprintf(c->why, sizeof c->why, "its sandbox ended");
        c->deleted = true;
        stop_watching(c);
        process_done(&c->process);
        if (c->status == COMMAND_RUNNING) {
            c->signal = SIGKILL;
            c->exit_code = 128 + SIGKILL;
            over(c, COMMAND_KILLED);
        } else {
            forget(c);
        }
    }
}

void commands_pause(struct live *l, bool pause) {
    uint64_t now = now_ns();
    for (struct command *c = l->commands; c; c = c->next) {
        if (pause && c->timer.place) {
            c->left_ns = c->timer.at_ns > now ? c->timer.at_ns - now : 1;
            loop_timer_stop(loop_of(c), &c->timer);
        } else if (!pause && c->left_ns && c->status == COMMAND_RUNNING) {
            loop_timer(loop_of(c), &c->timer, now + c->left_ns);
            c->left_ns = 0;
        }
    }
}

/* ---- for others ---- */

static struct command *make(struct live *l, struct command_request *q) {
    struct command *c = xcalloc(1, sizeof *c);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    c->live = l;
    c->req = *q;
    *q = (struct command_request){0};
    c->terminal = c->exit_code = c->signal = -1;
    c->kills = l->sandbox ? cgroup_fds_kills(l->sandbox->cgroup) : 0;
    c->pids_refused = l->sandbox ? cgroup_fds_pids_refused(l->sandbox->cgroup) : 0;
    c->created = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    c->process = (struct process){.kind = &kind, .owner = c, .fds = {-1, -1, -1}};
    c->timer = (struct timer){.fn = on_timer, .arg = c};
    c->stdin_watch = (struct watch){.fd = -1, .fn = on_stdin, .arg = c};
    c->free_later = (struct deferred){.fn = free_now, .arg = c};
    c->stdin_data = (struct buf)BUF_INIT;
    for (int i = 0; i < 2; i++) {
        c->out[i].kept = (struct buf)BUF_INIT;
        c->out[i].watch.fd = c->out[i].fd = -1;
    }
    struct command **at = &l->commands;
    while (*at)
        at = &(*at)->next;
    *at = c;
    live_hold(l);
    return c;
}

struct command *command_resume(struct live *l, struct command_request *q) {
    return make(l, q);
}

int command_may_start(const struct live *l, struct err *e) {
    unsigned n = 0;
    for (const struct command *c = l->commands; c; c = c->next)
        n += c->status == COMMAND_RUNNING && !c->deleted;
    return n < MAX_RUNNING ? 0
                           : err_user(e, "too_many_commands",
                                      "%u commands run already in this sandbox, which is as many "
                                      "as may be",
                                      n);
}

static int settle_output(struct live *l, struct command_request *q, struct err *e) {
    uint64_t own = l->req.limits.output_bytes, most = l->engine->config.maxima.output_bytes;
    if (q->output_bytes == 0)
        q->output_bytes = own;
    if (most < own)
        most = own;
    return q->output_bytes <= most
               ? 0
               : err_user(e, "limit_too_high", "output_bytes of %llu is above the maximum of %llu",
                          (unsigned long long)q->output_bytes, (unsigned long long)most);
}

int command_new(struct live *l, struct command_request *q, const struct command_callbacks *cb,
                struct command **ret, struct err *e) {
    if (command_may_start(l, e) < 0 || settle_output(l, q, e) < 0)
        return -1;
    struct command *c = make(l, q);
    c->cb = *cb;
    id_make("cmd_", c->id, sizeof c->id);
    if (c->req.stdin_len) /* it is not copied */
        c->stdin_data = (struct buf){c->req.stdin_data, c->req.stdin_len, c->req.stdin_len + 1};
    if (c->req.stdin_len)
        c->req.stdin_data = NULL;
    c->stdin_closed = !c->req.stdin_open;
    *ret = c;
    process_start(&c->process, l);
    return 0;
}

struct command *command_find(struct live *l, const char *id, struct err *e) {
    for (struct command *c = l->commands; c; c = c->next) {
        if (!c->deleted && strcmp(c->id, id) == 0)
            return c;
    }
    err_user(e, "no_such_command", "there is no command %.60s in this sandbox", id);
    return NULL;
}

struct command *command_next(struct live *l, const struct command *c) {
    struct command *next = c ? c->next : l->commands;
    while (next && next->deleted)
        next = next->next;
    return next;
}

const char *command_id(const struct command *c) {
    return c->id;
}

const struct command_request *command_asked(const struct command *c) {
    return &c->req;
}

const char *command_status(const struct command *c) {
    return status_words[c->status];
}

bool command_runs(const struct command *c) {
    return c->status == COMMAND_RUNNING;
}

bool command_has_terminal(const struct command *c) {
    return c->req.rows > 0;
}
bool command_stays(const struct command *c) {
    return c->req.stays;
}
void command_set_stays(struct command *c, bool stays) {
    c->req.stays = stays;
}

const struct denials *command_denied(const struct command *c) {
    return &c->denied;
}

struct command_end command_end(struct command *c) {
    output_whole(&c->out[0]);
    output_whole(&c->out[1]);
    return (struct command_end){
        .text = {c->out[0].whole, c->out[1].whole},
        .truncated = {output_truncated(&c->out[0]), output_truncated(&c->out[1])},
        .timed_out = c->status == COMMAND_TIMEOUT,
        .exit_code = c->exit_code,
        .duration_ms = c->ended_ns > c->started_ns ? (c->ended_ns - c->started_ns) / 1000000u : 0};
}

const struct buf *command_kept(const struct command *c) {
    return &c->out[0].kept;
}

void command_call(struct command *c, const struct command_callbacks *cb) {
    struct command_callbacks before = c->cb;
    c->cb = *cb;
    if (before.on_replaced && before.arg != cb->arg)
        before.on_replaced(before.arg);
}

static void put_number(struct jw *j, const char *name, int v) {
    if (v >= 0)
        jw_key_int(j, name, v);
    else
        jw_key_null(j, name);
}

static void put_warnings(struct jw *j, const struct command *c) {
    struct limits_met m = {.limit = c->limit,
                           .of = c->live->req.limits,
                           .cut = {!c->req.rows && output_truncated(&c->out[0]),
                                   output_truncated(&c->out[1])}, /* a terminal told all */
                           .lost = c->cut};
    AUTO_BUF lines = BUF_INIT;
    m.of.timeout_ms = c->req.timeout_ms;
    m.of.output_bytes = c->req.output_bytes;
    warnings_add(&m, &lines);
    warnings_put(j, &lines);
}

static void put_output(struct jw *j, struct command *c, struct rope *to) {
    for (int i = 0; i < 2; i++) {
        AUTO_ROPE texts = ROPE_INIT;
        output_share(&c->out[i], &texts);
        rope_key_texts(to, j, i == 0 ? "stdout" : "stderr", &texts);
    }
}

/* With its output: the beginning goes to `to`, the end is left to the caller. */
static void put_command(struct jw *j, struct command *c, struct rope *to) {
    uint64_t until = c->ended_ns ? c->ended_ns : now_ns();
    jw_object(j);
    jw_key_str(j, "id", c->id);
    jw_key_str(j, "status", command_status(c));
    jw_key_str(j, "cmd", c->req.shown);
    jw_key_str(j, "cwd", c->req.cwd);
    jw_key_bool(j, "terminal", c->req.rows > 0);
    jw_key_real(j, "created", c->created);
    if (to)
        put_output(j, c, to);
    put_number(j, "exit_code", c->status == COMMAND_TIMEOUT ? -1 : c->exit_code);
    put_number(j, "signal", c->signal);
    jw_key_bool(j, "timed_out", c->status == COMMAND_TIMEOUT);
    jw_key_uint(j, "duration_ms", c->started_ns ? (until - c->started_ns) / 1000000u : 0);
    jw_key_bool(j, "stdout_truncated", c->cut || output_truncated(&c->out[0]));
    jw_key_bool(j, "stderr_truncated", c->cut || output_truncated(&c->out[1]));
    denials_put(&c->denied, j);
    jw_key_str(j, "problem", c->why[0] ? c->why : NULL);
    put_warnings(j, c);
    jw_object_end(j);
}

void command_json(struct command *c, struct buf *to) {
    struct jw j = JW_INIT(to);
    put_command(&j, c, NULL);
}

void command_result(struct command *c, struct rope *to) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    put_command(&j, c, to);
    rope_add(to, &json);
}

int command_signal(struct command *c, int sig, struct err *e) {
    if (c->status != COMMAND_RUNNING)
        return err_user(e, "command_over", "the command is over: it takes no signals");
    if (sig == SIGKILL)
        process_kill(&c->process);
    else if (c->has_begun)
        process_signal(&c->process, sig, SIGNAL_GROUP);
    else
        c->signals |= 1u << sig;
    return 0;
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
    pump_stdin(c);
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
    loop_unwatch(loop_of(c), &c->stdin_watch);
    c->stdin_closed = true;
    fd_close(&c->terminal);
}

void command_hold(struct command *c, bool hold) {
    output_hold(&c->out[0], hold);
    output_hold(&c->out[1], hold);
}

void command_delete(struct command *c) {
    c->deleted = true;
    if (c->status == COMMAND_RUNNING)
        process_kill(&c->process);
    else
        forget(c);
}
