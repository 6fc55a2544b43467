/* See command_io.h.
 *
 * SECURITY: threads of the kernel work on what is typed at a terminal, and nobody bills them
 * (typing.c); whoever looks at the terminal, or closes it, waits for them. So typing goes in small
 * pieces, one after the other for all terminals; the sandbox pays for typing as it does for output
 * (pace.c), and nobody looks at a terminal before the kernel has worked off a large piece. A client
 * that types faster than that, or sends anything without end, is not read for a while (on_full),
 * and the sandbox pays for what the server has read: nobody else would. Nor would anybody pay for
 * waking all who wait for a stdin that is a pipe: while the sandbox rests, none is written. */

#include "engine/live/command_io.h"

#include "base/clock.h"
#include "base/fd.h"
#include "engine/core/budget.h"
#include "engine/live/command.h"
#include "engine/live/keep.h"
#include "engine/live/typing.h"
#include "engine/process/live_state.h"
#include "engine/process/pace.h"
#include "loop/crew.h"

#include <sys/ioctl.h>
#include <termios.h>

#define STDIN_MAX (1u << 20) /* bytes that wait for the program to read */

/* The same for all commands of a sandbox, with what they begin with. */
#define STDIN_ALL_MAX (64u << 20)

/* How much more a terminal's output costs: threads of the kernel work on it, too, unbilled. */
#define TERMINAL_COSTS 5

#define SCREEN_MAX (64u << 10) /* bytes of a terminal that are kept for its next user */

/* Bytes that wait to be typed: the client is not read from HIGH on until they are below LOW. */
#define TYPED_HIGH (64u << 10)
#define TYPED_LOW  (16u << 10)

/* The loop's own time for each read from a client. */
#define TURN_NS 4000u

/* Nanoseconds until a terminal that took nothing gets its next piece, and what trying costs; the
 * longest that we wait. */
#define TYPED_AGAIN    50000000u
#define TYPED_TRIED_NS 15000u
#define TYPED_LONG_NS  500000u

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

static void command_on_cost(struct output *o, uint64_t cpu_ns) {
    struct command *c = o->arg;
    pace_heard(c->live, &c->process, o->is_terminal ? TERMINAL_COSTS * cpu_ns : cpu_ns);
}

void command_watch_output(struct command *c, int stream, int fd) {
    struct err e;
    struct output *o = &c->out[stream];
    o->arg = c;
    o->on_data = command_on_data;
    o->on_cost = command_on_cost;
    o->account = &c->live->guest.kept;
    o->owner = crew_owner(c->live->req.tenant);
    o->is_terminal = fd == c->terminal;
    output_begin(o, &c->live->engine->reading, fd,
                 o->is_terminal ? SCREEN_MAX : c->req.output_bytes, &e);
    output_hold(o, HOLD_REST, rest_is_on(&c->live->rest));
}

static int stdin_fd(const struct command *c) {
    return c->req.rows ? c->terminal : c->process.fds[0];
}

/* What waits is memory of ours that the sandbox is charged for. */
static void count_stdin(struct command *c) {
    size_t waits = feed_backlog(&c->stdin_feed);
    if (c->live->sandbox)
        c->live->sandbox->stdin_bytes += waits - c->stdin_counted;
    c->stdin_counted = waits;
}

int command_stdin_fits(struct live *l, size_t len, struct err *e) {
    uint64_t there = l->sandbox ? l->sandbox->stdin_bytes : 0;
    if (len <= TYPED_HIGH)
        return 0;
    if (there && there + len > STDIN_ALL_MAX)
        return err_user(e, "stdin_full",
                        "the commands of this sandbox have %llu bytes of stdin to read already; "
                        "more than %u may not wait",
                        (unsigned long long)there, STDIN_ALL_MAX);
    return budget_fits(l->engine, len, e);
}

void command_stdin_text(struct command *c) {
    c->stdin_feed.text = c->req.stdin_text;
    c->req.stdin_text = NULL;
    count_stdin(c);
}

void command_drop_stdin(struct command *c) {
    feed_drop(&c->stdin_feed);
    c->stdin_feed.closed = true;
    count_stdin(c);
}

static void tell_full(struct command *c, bool rests) {
    size_t waits = feed_backlog(&c->stdin_feed);
    bool is_full = rests || waits > (c->is_full ? TYPED_LOW : TYPED_HIGH);
    if (is_full == c->is_full)
        return;
    c->is_full = is_full;
    if (c->cb.on_full)
        c->cb.on_full(c->cb.arg, is_full);
}

/* What the next piece is, and what it costs. What had a meaning in the last one nobody knows if
 * that was changed. */
static struct typing_piece next_piece(struct command *c) {
    uint64_t wake_ns = typing_wake_ns(&c->live->req.limits);
    struct termios t = {0};
    bool known = tcgetattr(c->terminal, &t) == 0;
    size_t len;
    const void *bytes = feed_next(&c->stdin_feed, &len);
    if (c->typed && (!known || typing_differs(&c->typed_as, &t)))
        pace_heard(c->live, &c->process, c->typed * wake_ns);
    c->typed_as = t;
    c->typed = 0;
    return typing_piece(known ? &t : NULL, bytes, len, wake_ns);
}

/* Types a piece, or nothing until the kernel has worked off the last ones. */
static enum fed type_some(struct command *c) {
    uint64_t now = now_ns(), *until = &c->live->shared->typed_ns;
    if (feed_backlog(&c->stdin_feed) == 0)
        return FED_ALL;
    if (c->type_timer.place || rest_is_on(&c->live->rest))
        return FED_SOME;
    if (*until > now) {
        loop_timer(command_loop(c), &c->type_timer, *until);
        return FED_SOME;
    }
    struct typing_piece piece = next_piece(c);
    c->stdin_feed.most = piece.n;
    enum fed how = feed_pump(&c->stdin_feed, c->terminal, &c->typed);
    uint64_t cost_ns = c->typed ? piece.cost_ns : TYPED_TRIED_NS;
    *until = now + cost_ns;
    if (cost_ns > TYPED_LONG_NS)
        output_hold(&c->out[0], HOLD_TYPED, true);
    if (cost_ns > TYPED_LONG_NS || how == FED_SOME)
        loop_timer(command_loop(c), &c->type_timer, c->typed ? *until : now + TYPED_AGAIN);
    pace_heard(c->live, &c->process, cost_ns);
    return how;
}

static enum fed write_some(struct command *c, int fd) {
    size_t taken = 0;
    if (feed_backlog(&c->stdin_feed) && rest_is_on(&c->live->rest)) {
        feed_stop(&c->stdin_feed);
        return FED_SOME;
    }
    uint64_t began = thread_cpu_ns();
    enum fed how = feed_pump(&c->stdin_feed, fd, &taken);
    pace_heard(c->live, &c->process, thread_cpu_ns() - began);
    return how;
}

static void command_on_typed(struct timer *t) {
    struct command *c = t->arg;
    output_hold(&c->out[0], HOLD_TYPED, false);
    command_pump_stdin(c);
}

static void stop_typing(struct command *c) {
    feed_stop(&c->stdin_feed);
    loop_timer_stop(command_loop(c), &c->type_timer);
}

void command_pump_stdin(struct command *c) {
    int fd = stdin_fd(c);
    if (fd < 0)
        return;
    enum fed how = c->req.rows ? type_some(c) : write_some(c, fd);
    count_stdin(c);
    if (how == FED_GONE)
        c->stdin_feed.closed = true;
    if (how != FED_SOME && c->stdin_feed.closed)
        process_close_stdin(&c->process);
    if (c->req.rows)
        tell_full(c, c->is_full && rest_is_on(&c->live->rest));
}

void command_heard(struct command *c, uint64_t cpu_ns) {
    pace_heard(c->live, &c->process, cpu_ns + TURN_NS);
    tell_full(c, rest_is_on(&c->live->rest));
}

static void command_on_room(void *arg) {
    command_pump_stdin(arg);
}

int command_stdin(struct command *c, const void *data, size_t len, struct err *e) {
    static const char end = 4; /* Ctrl-D, which is the end at a terminal */
    if (c->status != COMMAND_RUNNING)
        return err_user(e, "command_over", "the command is over: nobody reads its stdin");
    if (c->stdin_feed.closed)
        return err_user(e, "stdin_closed", "the command's stdin is closed");
    if (feed_backlog(&c->stdin_feed) + len > STDIN_MAX + (c->req.rows ? TYPED_HIGH : 0))
        return err_user(e, "stdin_full", "the command does not read: %zu bytes wait already",
                        feed_backlog(&c->stdin_feed));
    if (command_stdin_fits(c->live, len, e) < 0)
        return -1;
    if (len == 0 && c->req.rows)
        feed_add(&c->stdin_feed, &end, 1);
    else if (len == 0)
        c->stdin_feed.closed = true;
    feed_add(&c->stdin_feed, data, len);
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
    if (c->terminal < 0) { /* the program has not begun */
        process_kill(&c->process);
        return;
    }
    output_end(&c->out[0]);
    stop_typing(c);
    c->stdin_feed.closed = true;
    fd_close(&c->terminal);
}

void command_hold(struct command *c, bool hold) {
    outputs_hold(c->out, HOLD_READER, hold);
}

void command_drain(struct command *c) {
    for (int i = 0; i < 2; i++) {
        output_drain(&c->out[i]);
        output_end(&c->out[i]);
        AUTO_BUF text = BUF_INIT;
        utf8_stream_end(&c->utf8[i], &text);
        command_emit(c, i, &text);
    }
    stop_typing(c);
}

void command_stop_watching(struct command *c) {
    stop_typing(c);
    output_end(&c->out[0]);
    output_end(&c->out[1]);
}

void command_io_init(struct command *c) {
    c->stdin_feed = (struct feed){.loop = command_loop(c), .on_room = command_on_room, .arg = c};
    feed_init(&c->stdin_feed);
    c->type_timer = (struct timer){.fn = command_on_typed, .arg = c};
    for (int i = 0; i < 2; i++) {
        c->out[i].kept = (struct buf)BUF_INIT;
        c->out[i].watch.fd = c->out[i].fd = -1;
    }
}

void command_io_done(struct command *c) {
    output_free(&c->out[0]);
    output_free(&c->out[1]);
    feed_done(&c->stdin_feed);
}
