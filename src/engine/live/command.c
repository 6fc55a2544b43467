/* Commands in a live sandbox: processes that enter it as kernels do, and become another program
 * there instead of running cells. One that is over stays in the list, with what is kept of its
 * output, until it is deleted or others need the room. */

#include "engine/live/command.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/list.h"
#include "engine/core/memory_watch.h"
#include "engine/core/state.h"
#include "engine/live/command_io.h"
#include "engine/live/keep.h"
#include "engine/live/lives.h"
#include "engine/process/group.h"
#include "engine/process/live_state.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_RUNNING 32
#define MAX_OVER    64          /* that are remembered */
#define MAX_KEPT    (32u << 20) /* bytes of output of those */

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
    json_decref(q->stdin_text);
    *q = (struct command_request){0};
}

static void command_free(struct deferred *d) {
    struct command *c = d->arg;
    command_request_done(&c->req);
    command_io_done(c);
    outcome_done(&c->outcome);
    buf_done(&c->lasting);
    free(c);
}

/* ---- the process ---- */

static void merge_env(json_t *all, const char *more) {
    json_auto_t *other = more ? json_loads(more, 0, NULL) : NULL;
    if (other)
        json_object_update(all, other);
}

static void merge_profile(json_t *all, const struct config_list *env) {
    for (unsigned k = 0; k < env->n; k++) {
        size_t n = strcspn(env->items[k], "=");
        AUTO_FREE char *name = xstrndup(env->items[k], n);
        json_object_set_new(all, name, json_string(env->items[k] + n + 1));
    }
}

/* Returns how many strings there are. */
static uint32_t put_env(struct buf *to, const struct command *c) {
    json_auto_t *all = json_loads(usual_env, 0, NULL);
    const char *key;
    json_t *value;
    if (c->req.rows)
        json_object_set_new(all, "TERM", json_string("xterm-256color"));
    merge_profile(all, &c->live->sandbox->pool->config->env);
    merge_env(all, c->live->req.env);
    merge_env(all, c->req.env);
    json_object_foreach(all, key, value) {
        AUTO_BUF pair = BUF_INIT;
        buf_addf(&pair, "%s=%s", key, json_string_value(value));
        wire_strs_add(to, pair.data);
    }
    return (uint32_t)json_object_size(all);
}

static void command_begin(struct command *c) {
    const struct limits limits = group_self_limits(&c->process);
    struct wire_out o;
    AUTO_BUF args = BUF_INIT;
    AUTO_BUF env = BUF_INIT;
    struct k_exec m = {.limits = limits,
                       .rows = c->req.rows,
                       .columns = c->req.columns,
                       .directory = c->req.cwd,
                       .terminal = c->req.rows ? c->terminal : -1};
    for (char **at = c->req.argv; *at; at++, m.args.n++)
        wire_strs_add(&args, *at);
    m.env.n = put_env(&env, c);
    m.args.raw = (const uint8_t *)args.data, m.args.len = args.len;
    m.env.raw = (const uint8_t *)env.data, m.env.len = env.len;
    k_exec_put(&o, &m);
    if (o.bad) {
        snprintf(c->why, sizeof c->why, "its arguments and environment are too long");
        process_kill(&c->process);
        return;
    }
    chan_send(c->process.ctl, &o);
    memory_wake(c->live->engine);
}

/* A terminal went with the server that had it: the command hears of that, and ends. */
static void command_on_resumed(void *owner) {
    struct command *c = owner;
    if (!c->begun) {
        process_kill(&c->process);
        return;
    }
    command_watch_output(c, 1, c->process.fds[2]);
    if (c->req.rows) {
        c->stdin_feed.closed = true;
        return;
    }
    command_watch_output(c, 0, c->process.fds[1]);
    command_pump_stdin(c); /* what was not written yet is lost, but not that it ends */
}

/* The terminal's other end is ours alone: the process has it only until it executes. */
static void command_on_terminal(void *arg, struct wire_in *in) {
    struct command *c = arg;
    struct err e;
    struct i_reply_fd m;
    if (in && i_reply_fd_get(in, &m, &e) == 0)
        c->terminal = wire_keep(in, m.fd);
    if (c->terminal >= 0 && isatty(c->terminal) && fd_set_nonblock(c->terminal, &e) == 0) {
        command_watch_output(c, 0, c->terminal);
        command_pump_stdin(c);
        command_begin(c);
        return;
    }
    snprintf(c->why, sizeof c->why, "no terminal could be opened for it");
    process_kill(&c->process);
}

static void ask_terminal(struct command *c) {
    struct wire_out o;
    wire_begin(&o, WIRE_I_TTY);
    if (!live_ask(c->live, &o, command_on_terminal, c))
        command_on_terminal(c, NULL);
}

static void command_on_ready(void *owner) {
    struct command *c = owner;
    AUTO_BUF json = BUF_INIT;
    c->outcome.started_ns = now_ns();
    network_attempts_begin(&c->network, c->live);
    command_watch_output(c, 1, c->process.fds[2]);
    if (!c->req.rows) {
        command_watch_output(c, 0, c->process.fds[1]);
        command_pump_stdin(c);
    }
    if (c->req.timeout_ms)
        loop_timer(c->live->engine->loop, &c->timer,
                   c->outcome.started_ns + ms_to_ns(c->req.timeout_ms));
    if (c->req.rows)
        ask_terminal(c);
    else
        command_begin(c);
    live_changed(c->live);
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_str(&j, "id", c->id);
    jw_object_end(&j);
    live_said(c->live);
    if (c->cb.on_event)
        c->cb.on_event(c->cb.arg, "start", &json);
}

/* It lets go of its control socket when it becomes the program that was asked for. */
static void command_on_hung_up(void *owner) {
    struct command *c = owner;
    c->has_begun = true;
    for (int sig = 1; sig < 32; sig++) {
        if (c->signals & 1u << sig)
            process_signal(&c->process, sig, SIGNAL_GROUP);
    }
    c->signals = 0;
}

static void command_on_frame(void *owner, struct wire_in *in) {
    struct command *c = owner;
    if (in->type == WIRE_K_BROKEN) {
        struct k_broken m;
        struct err e;
        k_broken_get(in, &m, &e);
        snprintf(c->why, sizeof c->why, "%s", m.why);
        return;
    }
    process_kill(&c->process);
}

static void command_on_dying(void *owner) {
    command_drain(owner);
}

static void command_forget(struct command *c) {
    LIST_REMOVE(&c->live->commands, c, next);
    output_uncount(&c->out[0]);
    output_uncount(&c->out[1]);
    loop_timer_stop(c->live->engine->loop, &c->timer);
    command_stop_watching(c);
    process_done(&c->process);
    fd_close(&c->terminal);
    loop_defer(c->live->engine->loop, &c->free_later);
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
        command_forget(c);
    }
}

void commands_make_room(struct live *l) {
    for (struct command *c = l->commands, *next; c; c = next) {
        next = c->next;
        if (c->status != COMMAND_RUNNING)
            command_forget(c);
    }
}

static const uint8_t command_moves[COMMAND_STATES_] = {
    [COMMAND_RUNNING] = 1 << COMMAND_EXITED | 1 << COMMAND_KILLED | 1 << COMMAND_TIMEOUT,
};

static void command_move(struct command *c, enum command_status to) {
    state_check("command", command_moves, c->status, to);
    c->live->running--;
    c->status = to;
}

/* Those of its sandbox: others in it may have met them, too. */
static void find_limit(struct command *c) {
    const struct sandbox *s = c->live->sandbox;
    if (c->status == COMMAND_TIMEOUT)
        outcome_met(&c->outcome, LIMIT_TIME);
    if (s)
        outcome_met_in(&c->outcome,
                       &(struct cgroup_usage){.out_of_pids = cgroup_fds_pids_refused(s->cgroup) >
                                                             c->pids_refused},
                       s);
}

static void command_over(struct command *c, enum command_status status) {
    c->outcome.ended_ns = now_ns();
    command_move(c, status);
    network_attempts_end(&c->network, c->live, &c->outcome.denied);
    live_unask(c->live, c);
    find_limit(c);
    command_drop_stdin(c);
    loop_timer_stop(c->live->engine->loop, &c->timer);
    fd_close(&c->terminal);
    struct live *l = c->live;
    live_said(l);
    live_changed(l);
    if (l->engine->lives->on_command)
        l->engine->lives->on_command(l->engine->lives->command_arg, l, c);
    if (c->cb.on_done)
        c->cb.on_done(c->cb.arg, c);
    if (c->deleted)
        command_forget(c);
    tidy(l);
    live_release(l);
}

/* A shell tells of such a death by its exit code. */
static void explain_kill(struct command *c) {
    const struct live *l = c->live;
    if (c->outcome.exit_code == 128 + SIGKILL && !c->called_off && l->sandbox &&
        cgroup_fds_kills(l->sandbox->cgroup) > c->kills)
        snprintf(c->why, sizeof c->why, "the sandbox needed more than its %u MB of memory",
                 l->req.limits.memory_mb);
}

static void command_on_end(void *owner, int status, const char *why) {
    struct command *c = owner;
    enum command_status how = COMMAND_EXITED;
    if (why && !c->why[0])
        snprintf(c->why, sizeof c->why, "%s", why);
    if (c->outcome.started_ns == 0)
        c->outcome.started_ns = now_ns();
    if (c->why[0]) {
        c->outcome.exit_code = 126;
        how = COMMAND_KILLED;
    } else {
        outcome_exited(&c->outcome, status);
        how = WIFSIGNALED(status) ? COMMAND_KILLED : COMMAND_EXITED;
    }
    if (!c->why[0])
        explain_kill(c);
    command_over(c, c->called_off ? COMMAND_TIMEOUT : how);
}

static void command_read(void *owner, bool on) {
    struct command *c = owner;
    outputs_hold(c->out, HOLD_REST, !on);
    if (on)
        command_pump_stdin(c);
}

static struct denials *command_refused(void *owner) {
    struct command *c = owner;
    return &c->outcome.denied;
}

static const struct process_kind command_kind = {.on_ready = command_on_ready,
                                                 .on_resumed = command_on_resumed,
                                                 .on_frame = command_on_frame,
                                                 .on_hung_up = command_on_hung_up,
                                                 .read = command_read,
                                                 .on_dying = command_on_dying,
                                                 .denied = command_refused,
                                                 .on_end = command_on_end};

static void command_on_timer(struct timer *t) {
    struct command *c = t->arg;
    c->called_off = true;
    process_kill(&c->process);
}

void commands_ended_with(struct live *l) {
    while (l->commands) {
        struct command *c = l->commands;
        snprintf(c->why, sizeof c->why, "its sandbox ended");
        c->deleted = true;
        command_stop_watching(c);
        process_done(&c->process);
        if (c->status == COMMAND_RUNNING) {
            outcome_exited(&c->outcome, SIGKILL);
            command_over(c, COMMAND_KILLED);
        } else {
            command_forget(c);
        }
    }
}

void commands_pause(struct live *l, bool pause) {
    uint64_t now = now_ns();
    for (struct command *c = l->commands; c; c = c->next) {
        if (pause && c->timer.place) {
            c->left_ns = c->timer.at_ns > now ? c->timer.at_ns - now : 1;
            loop_timer_stop(c->live->engine->loop, &c->timer);
        } else if (!pause && c->left_ns && c->status == COMMAND_RUNNING) {
            loop_timer(c->live->engine->loop, &c->timer, now + c->left_ns);
            c->left_ns = 0;
        }
    }
}

/* ---- for others ---- */

static struct command *command_alloc(struct live *l, struct command_request *q) {
    struct command *c = xcalloc(1, sizeof *c);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    c->live = l;
    c->req = *q;
    *q = (struct command_request){0};
    c->lasting = (struct buf)BUF_INIT;
    c->terminal = -1;
    outcome_init(&c->outcome);
    c->kills = l->sandbox ? cgroup_fds_kills(l->sandbox->cgroup) : 0;
    c->pids_refused = l->sandbox ? cgroup_fds_pids_refused(l->sandbox->cgroup) : 0;
    c->created = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    c->process = (struct process){.kind = &command_kind, .owner = c, .fds = {-1, -1, -1}};
    c->timer = (struct timer){.fn = command_on_timer, .arg = c};
    c->free_later = (struct deferred){.fn = command_free, .arg = c};
    command_io_init(c);
    LIST_APPEND(&l->commands, c, next);
    l->running++;
    live_hold(l);
    return c;
}

struct command *command_resume(struct live *l, struct command_request *q) {
    return command_alloc(l, q);
}

void command_resume_over(struct command *c, enum command_status how) {
    command_move(c, how);
    live_release(c->live);
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
    if (q->output_bytes <= most)
        return 0;
    AUTO_BUF text = BUF_INIT;
    buf_adds(&text, "output of ");
    limits_add_bytes(&text, q->output_bytes);
    buf_adds(&text, " is above this engine's maximum of ");
    limits_add_bytes(&text, most);
    return err_user(e, "limit_too_high", "%s", text.data);
}

int command_new(struct live *l, struct command_request *q, const struct command_callbacks *cb,
                struct command **ret, struct err *e) {
    if (command_may_start(l, e) < 0 || settle_output(l, q, e) < 0 ||
        command_stdin_fits(l, json_string_length(q->stdin_text), e) < 0)
        return -1;
    struct command *c = command_alloc(l, q);
    c->cb = *cb;
    id_make("cmd_", c->id, sizeof c->id);
    command_stdin_text(c);
    c->stdin_feed.closed = !c->req.stdin_open;
    *ret = c;
    process_start(&c->process, l);
    return 0;
}

void command_call(struct command *c, const struct command_callbacks *cb) {
    struct command_callbacks before = c->cb;
    c->cb = *cb;
    if (before.on_replaced && before.arg != cb->arg)
        before.on_replaced(before.arg);
    if (c->cb.on_full && c->is_full)
        c->cb.on_full(c->cb.arg, true);
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

void command_delete(struct command *c) {
    c->deleted = true;
    if (c->status == COMMAND_RUNNING)
        process_kill(&c->process);
    else
        command_forget(c);
}
