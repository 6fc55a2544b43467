/* See questions.h. The table says in which stage each question is allowed. Answers are told apart
 * by their order only, so that every question has exactly one, but for I_LEFT, which has none. */

#include "init/questions.h"

#include "base/fd.h"
#include "init/files.h"
#include "init/ports.h"
#include "sandbox/proc.h"
#include "sandbox/root.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KILL_PATIENCE 25000 /* rounds of 200 µs: five seconds */

/* One question under way; *ret_fd is what the answer names, closed after sending. */
struct question {
    struct init *init;
    struct wire_in *in;
    struct wire_out *o;
    int *ret_fd;
};

static void question_done(struct question *q, int errnum, const char *what) {
    if (errnum)
        files_error(q->o, errnum, what);
    else
        wire_begin(q->o, WIRE_I_REPLY);
}

/* The zygote reaps the kernel, we the rest. There is no event for "nobody else is left", hence the
 * short naps. */
int questions_kill_all(void) {
    const struct timespec nap = {.tv_nsec = 200000};
    for (int i = 0; i < KILL_PATIENCE; i++) {
        if (kill(-1, SIGKILL) < 0 && errno == ESRCH)
            return 0;
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        nanosleep(&nap, NULL);
    }
    return ETIMEDOUT;
}

static void question_file(struct question *q) {
    const struct init *b = q->init;
    files_serve(q->in, b->workspace, b->plan.uid, q->o, q->ret_fd);
}

static void question_kill(struct question *q) {
    struct err e;
    question_done(q, wire_get_nothing(q->in, &e) < 0 ? EINVAL : questions_kill_all(), "kill");
}

static void question_signal(struct question *q) {
    struct i_signal m;
    struct err e;
    int r = i_signal_get(q->in, &m, &e);
    question_done(q, r < 0 ? EINVAL : procs_signal(&q->init->procs, m.number, m.signal, m.scope),
                  "signal");
}

static void question_limits(struct question *q) {
    struct init *b = q->init;
    struct i_limits m;
    struct err e;
    if (i_limits_get(q->in, &m, &e) < 0) {
        question_done(q, EINVAL, "resize");
        return;
    }
    /* An older server does not send all of them: those are 0, and stay as they are. */
    const struct limits old = b->plan.limits, next = limits_over(&old, &m.limits);
    struct root_private places = {.disk_mb = next.disk_mb, .disk_files = disk_files(next.disk_mb)};
    int r = next.disk_mb == old.disk_mb ? 0 : root_resize(&places, &e);
    question_done(q, r < 0 ? e.code : 0, "resize");
    b->plan.limits = next;
    if (r < 0)
        b->plan.limits.disk_mb = old.disk_mb;
    watch_change(&b->watcher, &next);
    if (next.memory_mb != old.memory_mb)
        proc_memory(&b->meminfo, next.memory_mb, &e); /* a full tmpfs has no room: no matter */
}

static void question_watch(struct question *q) {
    struct init *b = q->init;
    struct i_watch m;
    struct err e;
    if (i_watch_get(q->in, &m, &e) < 0) {
        question_done(q, EINVAL, "watch");
        return;
    }
    const struct watch_plan p = {.limits = m.limits,
                                 .is_live = b->plan.live,
                                 .network = b->plan.used,
                                 .kernel = procs_pid(&b->procs, 0),
                                 .procs = &b->procs,
                                 .usher = &b->network.usher.pid};
    watch_limits(&b->watcher, &p);
    question_done(q, 0, "watch");
}

static void question_usage(struct question *q) {
    struct watch_usage u = watch_usage(&q->init->watcher);
    i_reply_usage_put(q->o,
                      &(struct i_reply_usage){.memory_peak = u.memory_peak, .cpu_us = u.cpu_us});
}

static void question_echo(struct question *q) {
    struct i_echo m;
    struct err e;
    q->init->told_tasks = 0; /* that was another server */
    if (i_echo_get(q->in, &m, &e) < 0)
        question_done(q, EINVAL, "echo");
    else
        i_reply_echo_put(q->o, &(struct i_reply_echo){.value = m.value});
}

static void question_bind(struct question *q) {
    struct init *b = q->init;
    const struct place at = {.workspace = b->workspace, .uid = b->plan.uid};
    struct i_bind m;
    struct err e;
    if (i_bind_get(q->in, &m, &e) < 0) {
        question_done(q, EINVAL, "bind");
        return;
    }
    int r = binds_mount(&b->binds, &m, &at, &e);
    if (r == 0)
        *b->plan.used = 1; /* through it a socket can get into another sandbox */
    question_done(q, r < 0 ? e.code : 0, m.path);
}

static void question_tree(struct question *q) {
    struct i_tree m;
    struct err e;
    if (i_tree_get(q->in, &m, &e) < 0) {
        question_done(q, EINVAL, "tree");
        return;
    }
    int r = binds_mount_tree(&q->init->binds, m.id, &e);
    question_done(q, r < 0 ? e.code : 0, r < 0 ? e.text : "tree");
}

static void question_network(struct question *q) {
    struct i_network m;
    struct err e;
    if (i_network_get(q->in, &m, &e) < 0) {
        question_done(q, EINVAL, "network");
        return;
    }
    AUTO_FD gate = wire_keep(q->in, m.gate);
    int r = network_attach(q->init, &gate, &e);
    question_done(q, r < 0 ? e.code : 0, r < 0 ? e.text : "network");
}

static void question_traffic(struct question *q) {
    AUTO_BUF records = BUF_INIT;
    traffic_write(&q->init->network, &records);
    i_reply_traffic_put(q->o, &(struct i_reply_traffic){.records = {records.data, records.len}});
}

static void question_connect(struct question *q) {
    struct init *b = q->init;
    struct i_connect m;
    struct err e;
    if (i_connect_get(q->in, &m, &e) < 0) {
        question_done(q, EINVAL, "connect");
        return;
    }
    int r = ports_connect(&m, q->ret_fd, &e);
    *b->plan.used = 1; /* the server may have it for longer than the sandbox lives */
    if (r < 0)
        question_done(q, e.code, e.text);
    else
        i_reply_fd_put(q->o, &(struct i_reply_fd){.fd = *q->ret_fd});
}

static void question_ports(struct question *q) {
    uint16_t ports[PORTS_MAX];
    bool cut;
    unsigned n = ports_list(q->init->plan.uid, ports, &cut);
    i_reply_ports_put(q->o,
                      &(struct i_reply_ports){.cut = cut, .ports = {ports, n * sizeof *ports}});
}

#define FRESH   (1u << INIT_FRESH)
#define ONESHOT (1u << INIT_ONESHOT)
#define LIVE    (1u << INIT_LIVE)

static const struct {
    enum wire_type type;
    unsigned stages;
    void (*fn)(struct question *q); /* NULL: no answer, see keep_left */
} questions[] = {
    {WIRE_I_OPEN, ONESHOT | LIVE, question_file},
    {WIRE_I_CHANGES, ONESHOT | LIVE, question_file},
    {WIRE_I_STAT, LIVE, question_file},
    {WIRE_I_LIST, LIVE, question_file},
    {WIRE_I_MKDIR, LIVE, question_file},
    {WIRE_I_MOVE, LIVE, question_file},
    {WIRE_I_CHMOD, LIVE, question_file},
    {WIRE_I_REMOVE, LIVE, question_file},
    {WIRE_I_TEMP, LIVE, question_file},
    {WIRE_I_PLACE, LIVE, question_file},
    {WIRE_I_LINK, LIVE, question_file},
    {WIRE_I_TTY, LIVE, question_file},
    {WIRE_I_ECHO, ONESHOT | LIVE, question_echo},
    {WIRE_I_KILL, ONESHOT | LIVE, question_kill},
    {WIRE_I_SIGNAL, ONESHOT | LIVE, question_signal},
    {WIRE_I_LIMITS, ONESHOT | LIVE, question_limits},
    {WIRE_I_WATCH, ONESHOT | LIVE, question_watch},
    {WIRE_I_USAGE, ONESHOT | LIVE, question_usage},
    {WIRE_I_NETWORK, ONESHOT | LIVE, question_network},
    {WIRE_I_TRAFFIC, ONESHOT | LIVE, question_traffic},
    {WIRE_I_BIND, LIVE, question_bind},
    {WIRE_I_TREE, ONESHOT | LIVE, question_tree},
    {WIRE_I_CONNECT, LIVE, question_connect},
    {WIRE_I_PORTS, LIVE, question_ports},
    {WIRE_I_LEFT, FRESH | ONESHOT | LIVE, NULL},
};
#define QUESTIONS (sizeof questions / sizeof *questions)

bool questions_allows(enum wire_type type, enum init_stage stage) {
    for (size_t i = 0; i < QUESTIONS; i++) {
        if (questions[i].type == type)
            return questions[i].stages & 1u << stage;
    }
    return false;
}

/* None may be lost because the server is slow. */
static void question_answer(struct init *b, const struct wire_out *o) {
    struct err e;
    while (wire_send(b->req, o, &e) == WIRE_AGAIN) {
        struct pollfd p = {.fd = b->req, .events = POLLOUT};
        poll(&p, 1, -1);
    }
}

static void keep_left(struct init *b, struct wire_in *in) {
    struct i_left m;
    struct err e;
    if (i_left_get(in, &m, &e) == 0) {
        b->nleft = m.fds.n;
        wire_keep_all(in, m.fds.fd, m.fds.n, b->left);
    }
}

static enum init_stage stage_of(const struct init *b) {
    return b->procs.top == 0 ? INIT_FRESH : b->plan.live ? INIT_LIVE : INIT_ONESHOT;
}

bool questions_serve(struct init *b) {
    struct err e;
    struct wire_in in;
    in.nfds = in.fd_at = 0;
    enum wire_got got = wire_recv(b->req, &in, &e);
    if (got == WIRE_NONE)
        return false;
    if (got != WIRE_GOT || !questions_allows(in.type, stage_of(b)))
        _exit(0);
    fd_close_all(b->left, b->nleft);
    b->nleft = 0;
    struct wire_out o;
    int fd = -1;
    struct question q = {.init = b, .in = &in, .o = &o, .ret_fd = &fd};
    for (size_t i = 0; i < QUESTIONS; i++) {
        if (questions[i].type == in.type && questions[i].fn) {
            questions[i].fn(&q);
            question_answer(b, &o);
        }
    }
    if (in.type == WIRE_I_LEFT)
        keep_left(b, &in);
    wire_in_done(&in);
    fd_close(&fd);
    return true;
}
