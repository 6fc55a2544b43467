/* PID 1 of a sandbox: a few hundred lines between hostile code and everything else.
 *
 * Theory of operation. The nursery clones this process into fresh pid, mount, ipc and uts
 * namespaces; it is root of the nursery's user namespace, the kernels below it are not. It mounts
 * the private places, makes the pipes and sockets (whoever makes a pipe pays for its buffer), sends
 * all ends to the nursery and goes on to serve these, one message at a time, blocking on none of
 * them, but for a server that leaves its answers unread:
 *   - the server's requests on the request socket (a table, see requests[], and files.c);
 *   - the nursery, which asks for the ends of one more process, and the listeners that kernels hand
 * over before any user code, on the `hand` socket;
 *   - these seccomp listeners (procs.h): refused calls are answered with their errno and told to
 * the server once each; sockets that reach the network namespace are counted (sockets.c), and the
 * first one is told to the nursery and the server; locks on files are taken here (locks.c), and a
 * few calls have their whole answer from here (answers.c);
 *   - children that it inherits: they are reaped.
 * It is not dumpable, holds no capability that reaches outside the nursery, and dies with its
 * parent. When the server's end of the request socket is gone, nobody wants this sandbox any more:
 * it leaves, and the whole pid namespace with it. */

#include "init/init.h"

#include "base/fd.h"
#include "init/answers.h"
#include "init/caller.h"
#include "init/epolls.h"
#include "init/files.h"
#include "init/locks.h"
#include "init/procs.h"
#include "init/sockets.h"
#include "init/watch.h"
#include "sandbox/landlock.h"
#include "sandbox/proc.h"
#include "sandbox/root.h"
#include "sandbox/seccomp.h"
#include "wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DISK_FILES    20000 /* inodes of the tmpfs */
#define KILL_PATIENCE 25000 /* rounds of 200 µs: five seconds */
#define WINDOW_MS     100
#define WORK_MS       25 /* of each window, for the calls of the sandbox */
#define TOLD_MAX      32 /* refusals of one process in a second */

struct box {
    struct init_plan plan;
    int req, hand, signals, workspace;
    int meminfo; /* its own, once its memory is not the usual */
    struct procs procs;
    struct watcher watcher;
    struct sockets sockets;
    struct epolls epolls;
    struct locks locks;
    uint64_t window_ms, work_ms; /* when the window began, and our processor time then */
    bool told_of_use;            /* of the network */
    unsigned told_tasks;
    int left[WIRE_MAX_FDS]; /* owned: of the last message, if that was an I_LEFT */
    unsigned nleft;
};

/* What connects one process of the sandbox with its owner: `ours` is the owner's. */
struct ends {
    int ctl[2], ours[3], theirs[3], ruleset;
};

static void ends_done(struct ends *s) {
    fd_close_all(s->ctl, 2);
    fd_close_all(s->ours, 3);
    fd_close_all(s->theirs, 3);
    fd_close(&s->ruleset);
}

/* They belong to the sandbox's user, or /dev/stdout and its like could not be opened. */
static int make_pipes(uint32_t uid, struct ends *s, struct err *e) {
    for (int i = 0; i < 3; i++) {
        int p[2];
        if (pipe2(p, O_CLOEXEC) < 0)
            return err_sys(e, "pipe");
        s->ours[i] = i == 0 ? p[1] : p[0];
        s->theirs[i] = i == 0 ? p[0] : p[1];
        if (fchown(p[0], uid, uid) < 0)
            return err_sys(e, "pipe");
    }
    return 0;
}

/* What was made before a failure is the caller's to close. */
static int make_ends(uint32_t uid, struct ends *s, struct err *e) {
    memset(s, 0xff, sizeof *s);
    if (wire_pair(s->ctl, e) < 0 || make_pipes(uid, s, e) < 0 ||
        landlock_ruleset(&s->ruleset, e) < 0)
        return -1;
    if (s->ruleset < 0)
        s->ruleset = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return s->ruleset < 0 ? err_sys(e, "open /dev/null") : 0;
}

/* The empty program file of one that runs a single program is here from the start, and the
 * directory's time of modification is set a second back, so that a later look at it tells whether a
 * name was made, removed or renamed in it, however coarse the kernel's clock. */
static int open_workspace(struct box *b, int *ret_path, struct err *e) {
    AUTO_FD file = -1;
    if (!b->plan.live)
        file = open("/workspace/__main__.py", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (!b->plan.live && (file < 0 || fchown(file, b->plan.uid, b->plan.uid) < 0))
        return err_sys(e, "/workspace/__main__.py");
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {0}};
    clock_gettime(CLOCK_REALTIME, &times[1]);
    times[1].tv_sec--;
    if (utimensat(AT_FDCWD, "/workspace", times, 0) < 0)
        return err_sys(e, "set the time of /workspace");
    *ret_path = open("/workspace", O_PATH | O_DIRECTORY | O_CLOEXEC);
    b->workspace = open("/workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret_path < 0 || b->workspace < 0 ? err_sys(e, "open /workspace") : 0;
}

static int set_up(struct box *b, struct wire_out *o, struct err *e) {
    struct root_private places = {.uid = b->plan.uid,
                                  .disk_mb = b->plan.disk_mb,
                                  .disk_files = DISK_FILES,
                                  .terminals = b->plan.terminals,
                                  .mounts = b->plan.mounts,
                                  .nmounts = b->plan.nmounts};
    if (root_private(&places, e) < 0)
        return -1;
    struct ends s;
    int req[2], workspace = -1;
    if (make_ends(b->plan.uid, &s, e) < 0 || wire_pair(req, e) < 0 ||
        open_workspace(b, &workspace, e) < 0)
        return -1; /* the process ends: nothing leaks */
    const int all[] = {/* SANDBOX_… */ s.ctl[0],
                       req[0],
                       s.ours[0],
                       s.ours[1],
                       s.ours[2],
                       workspace,
                       /* KERNEL_…, from KERNEL_CTL on */ s.ctl[1],
                       s.theirs[0],
                       s.theirs[1],
                       s.theirs[2],
                       s.ruleset};
    _Static_assert(sizeof all / sizeof *all == INIT_FDS, "one of each");
    wire_begin(o, WIRE_I_READY);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        wire_put_fd(o, all[i]);
    b->req = req[1];
    return 0;
}

static void tell(struct box *b, uint32_t process, const struct seccomp_refusal *r) {
    struct wire_out o;
    struct err e;
    wire_begin(&o, WIRE_I_DENIED);
    wire_put_u32(&o, process);
    wire_put_str(&o, r->op);
    wire_put_str(&o, r->detail);
    wire_put_str(&o, r->rule);
    wire_send(b->req, &o, &e); /* a full socket loses the note, not the answer */
}

/* Whether the server is to hear of this refusal. In a one-shot sandbox each call is told once. In a
 * live one the next cell may be refused the same again, and only the server knows when it begins: a
 * number of refusals is told in each second, and the server leaves out what it has heard. */
static bool is_news(struct proc *from, int nr, bool live) {
    unsigned bit = (unsigned)nr % (8 * sizeof from->noted);
    time_t now = live ? time(NULL) : 0;
    if (live) {
        from->told = now == from->told_at ? from->told + 1 : 1;
        from->told_at = now;
        return from->told <= TOLD_MAX;
    }
    bool told = from->noted[bit / 8] & 1 << bit % 8;
    from->noted[bit / 8] |= (uint8_t)(1 << bit % 8);
    return !told;
}

/* Both know it before the call goes on. */
static void tell_of_use(struct box *b) {
    struct wire_out o;
    struct err e;
    *b->plan.used = 1;
    wire_begin(&o, WIRE_I_NET);
    b->told_of_use = b->told_of_use || wire_send(b->req, &o, &e) == WIRE_SENT;
}

/* The errno of the answer. */
static int refuse(struct box *b, struct proc *from, int nr, const uint64_t args[6]) {
    struct seccomp_refusal scratch;
    const struct seccomp_refusal *r = seccomp_refusal(nr, args, &scratch);
    if (is_news(from, nr, b->plan.live))
        tell(b, from->number, r); /* before the answer: it is there when the program goes on */
    return r->errnum;
}

static void serve_call(struct box *b, struct proc *from, struct caller *c) {
    switch (seccomp_service(c->nr, c->args)) {
    case SECCOMP_SOCKET:
        if (!b->told_of_use)
            tell_of_use(b);
        sockets_make(&b->sockets, c);
        return;
    case SECCOMP_ACCEPT:
        sockets_accept(c);
        return;
    case SECCOMP_BUFFER:
        sockets_buffer(c);
        return;
    case SECCOMP_LOCK:
        locks_serve(&b->locks, c);
        return;
    case SECCOMP_SYSINFO:
        answers_sysinfo(c, b->plan.memory_mb);
        return;
    case SECCOMP_MEMFD:
        if (!b->watcher.is_on)
            caller_go_on(c); /* its memory is its control group's */
        else
            answers_memfd(c, b->plan.uid);
        return;
    case SECCOMP_EPOLL:
        epolls_make(&b->epolls, c, b->plan.uid);
        return;
    case SECCOMP_IFACE:
        answers_interface(c);
        return;
    case SECCOMP_REFUSE:
        caller_answer(c, refuse(b, from, c->nr, c->args));
    }
}

static void serve_listener(struct box *b, struct proc *from) {
    struct seccomp_notif n;
    memset(&n, 0, sizeof n);
    if (ioctl(from->listener, SECCOMP_IOCTL_NOTIF_RECV, &n) < 0) {
        if (errno != EINTR && errno != ENOENT && errno != EAGAIN)
            fd_close(&from->listener);
        return;
    }
    struct caller c = {.listener = from->listener, .id = n.id};
    c.thread = (pid_t)n.pid;
    c.nr = n.data.nr;
    for (int i = 0; i < 6; i++)
        c.args[i] = n.data.args[i];
    serve_call(b, from, &c);
}

/* The ends of one more process, for the nursery. */
static void give_more(struct box *b) {
    struct ends s;
    struct err e;
    struct wire_out o;
    memset(&s, 0xff, sizeof s);
    int r = procs_full(&b->procs)
                ? err_set(&e, EAGAIN,
                          "a sandbox has %d kernels and commands at once at most; "
                          "end one first",
                          PROCS_MAX)
                : make_ends(b->plan.uid, &s, &e);
    wire_begin(&o, r < 0 ? WIRE_I_BROKEN : WIRE_I_READY);
    if (r < 0)
        wire_put_str(&o, e.text);
    const int all[] = {s.ctl[0], s.ours[0],   s.ours[1],   s.ours[2], /* the owner's */
                       s.ctl[1], s.theirs[0], s.theirs[1], s.theirs[2], s.ruleset};
    _Static_assert(sizeof all / sizeof *all == KERNEL_SET_FDS, "one of each");
    for (size_t i = 0; r == 0 && i < sizeof all / sizeof *all; i++)
        wire_put_fd(&o, all[i]);
    wire_send(b->hand, &o, &e);
    ends_done(&s);
}

static void serve_hand(struct box *b) {
    struct err e;
    struct wire_in in;
    in.nfds = in.fd_at = 0;
    enum wire_got got = wire_recv(b->hand, &in, &e);
    if (got == WIRE_NONE)
        return;
    if (got != WIRE_GOT) {
        wire_in_done(&in);
        fd_close(&b->hand); /* the nursery wants nothing more of this one */
        return;
    }
    if (in.type == WIRE_K_HAND) {
        uint32_t number = wire_get_u32(&in), pid = wire_get_u32(&in);
        int listener = wire_take_fd(&in);
        if (in.bad)
            fd_close(&listener);
        else
            procs_add(&b->procs, number, (pid_t)pid, listener);
        if (!b->plan.live) /* it comes once, before any user code */
            fd_close(&b->hand);
    } else if (in.type == WIRE_I_MORE) {
        give_more(b);
    }
    wire_in_done(&in);
}

static void reap(void) {
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

/* Every process but ourselves; the zygote reaps the kernel, we the rest. There is no event for
 * "nobody else is left", hence the short naps. */
static int kill_all(void) {
    const struct timespec nap = {.tv_nsec = 200000};
    for (int i = 0; i < KILL_PATIENCE; i++) {
        if (kill(-1, SIGKILL) < 0 && errno == ESRCH)
            return 0;
        reap();
        nanosleep(&nap, NULL);
    }
    return ETIMEDOUT;
}

static void done(struct wire_out *o, int errnum, const char *what) {
    if (errnum)
        files_error(o, errnum, what);
    else
        wire_begin(o, WIRE_I_REPLY);
}

static void do_kill(struct box *b, struct wire_in *in, struct wire_out *o, int *fd) {
    (void)b, (void)in, (void)fd;
    done(o, kill_all(), "kill");
}

static void do_signal(struct box *b, struct wire_in *in, struct wire_out *o, int *fd) {
    (void)fd;
    uint32_t number = wire_get_u32(in), sig = wire_get_u32(in), scope = wire_get_u32(in);
    done(o, in->bad ? EINVAL : procs_signal(&b->procs, number, sig, scope), "signal");
}

static void do_limits(struct box *b, struct wire_in *in, struct wire_out *o, int *fd) {
    (void)fd;
    const struct limits next = limits_get(in);
    struct root_private places = {.disk_mb = next.disk_mb, .disk_files = DISK_FILES};
    struct err e = {0};
    int r = in->bad || next.disk_mb == b->plan.disk_mb ? 0 : root_resize(&places, &e);
    done(o, in->bad ? EINVAL : r < 0 ? e.code : 0, "resize");
    if (in->bad)
        return;
    if (r == 0)
        b->plan.disk_mb = next.disk_mb;
    watch_change(&b->watcher, next.memory_mb, next.pids);
    if (next.memory_mb != b->plan.memory_mb) {
        b->plan.memory_mb = next.memory_mb;
        proc_memory(&b->meminfo, next.memory_mb, &e); /* a full tmpfs has no room: no matter */
    }
}

static void do_watch(struct box *b, struct wire_in *in, struct wire_out *o, int *fd) {
    (void)fd;
    const struct watch_plan p = {.limits = limits_get(in),
                                 .is_live = b->plan.live,
                                 .network = b->plan.used,
                                 .kernel = procs_pid(&b->procs, 0),
                                 .procs = &b->procs};
    watch_limits(&b->watcher, &p);
    done(o, in->bad ? EINVAL : 0, "watch");
}

static void do_usage(struct box *b, struct wire_in *in, struct wire_out *o, int *fd) {
    (void)in, (void)fd;
    struct watch_usage u = watch_usage(&b->watcher);
    wire_begin(o, WIRE_I_REPLY);
    wire_put_u64(o, u.memory_peak);
    wire_put_u64(o, u.cpu_us);
}

static void do_echo(struct box *b, struct wire_in *in, struct wire_out *o, int *fd) {
    (void)fd;
    b->told_tasks = 0; /* that was another server */
    wire_begin(o, WIRE_I_REPLY);
    wire_put_u64(o, wire_get_u64(in));
}

static const struct {
    enum wire_type type;
    void (*fn)(struct box *, struct wire_in *, struct wire_out *, int *fd);
} requests[] = {
    {WIRE_I_KILL, do_kill},   {WIRE_I_SIGNAL, do_signal}, {WIRE_I_LIMITS, do_limits},
    {WIRE_I_WATCH, do_watch}, {WIRE_I_USAGE, do_usage},   {WIRE_I_ECHO, do_echo},
};

/* Answers are told apart by their order only: none may be lost because the server is slow. */
static void answer(struct box *b, const struct wire_out *o) {
    struct err e;
    while (wire_send(b->req, o, &e) == WIRE_AGAIN) {
        struct pollfd p = {.fd = b->req, .events = POLLOUT};
        poll(&p, 1, -1);
    }
}

static void serve_request(struct box *b) {
    struct err e;
    struct wire_in in;
    in.nfds = in.fd_at = 0;
    enum wire_got got = wire_recv(b->req, &in, &e);
    if (got == WIRE_NONE)
        return;
    if (got != WIRE_GOT)
        _exit(0);
    fd_close_all(b->left, b->nleft);
    b->nleft = 0;
    if (in.type == WIRE_I_LEFT) {
        while (in.fd_at < in.nfds)
            b->left[b->nleft++] = wire_take_fd(&in);
        return;
    }
    struct wire_out o;
    int fd = -1;
    files_error(&o, ENOSYS, "no such request");
    bool found = files_serve(&in, b->workspace, b->plan.uid, &o, &fd);
    for (size_t i = 0; !found && i < sizeof requests / sizeof *requests; i++) {
        if (requests[i].type == in.type) {
            requests[i].fn(b, &in, &o, &fd);
            break;
        }
    }
    wire_in_done(&in);
    answer(b, &o);
    fd_close(&fd);
}

static bool send_number(struct box *b, enum wire_type type, uint32_t value) {
    struct wire_out o;
    struct err e;
    wire_begin(&o, type);
    wire_put_u32(&o, value);
    return wire_send(b->req, &o, &e) == WIRE_SENT;
}

static void serve_watch(struct box *b) {
    enum limit_kind hit = watch_tick(&b->watcher);
    unsigned tasks = b->watcher.tasks;
    if (b->plan.live && tasks != b->told_tasks && send_number(b, WIRE_I_TASKS, tasks))
        b->told_tasks = tasks;
    if (hit == LIMIT_NONE)
        return;
    send_number(b, WIRE_I_LIMIT, hit);
    if (hit != LIMIT_PIDS)
        kill_all();
}

static uint64_t clock_ms(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Nobody is charged for the time that the sandbox's calls take us, so it is bounded: after WORK_MS
 * of it they wait for the next window. Returns in how many milliseconds that is, 0: now. */
static int rest_ms(struct box *b) {
    uint64_t now = clock_ms(CLOCK_MONOTONIC), work = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    if (now >= b->window_ms + WINDOW_MS) {
        b->window_ms = now;
        b->work_ms = work;
    }
    return work - b->work_ms < WORK_MS ? 0 : (int)(b->window_ms + WINDOW_MS - now);
}

static _Noreturn void serve(struct box *b) {
    for (;;) {
        int rest = rest_ms(b);
        struct pollfd p[4 + PROCS_MAX] = {{.fd = b->req, .events = POLLIN},
                                          {.fd = b->signals, .events = POLLIN},
                                          {.fd = b->hand, .events = POLLIN},
                                          {.fd = b->watcher.timer, .events = POLLIN}};
        unsigned nprocs = b->procs.top;
        for (unsigned i = 0; i < nprocs; i++) {
            const struct proc *one = &b->procs.all[i];
            p[4 + i].fd = one->pid && !rest ? one->listener : -1;
            p[4 + i].events = POLLIN;
        }
        int patience = locks_patience(&b->locks);
        if (poll(p, 4 + nprocs, rest ? rest : patience) < 0 && errno != EINTR)
            _exit(1);
        if (patience >= 0 && !rest)
            locks_tick(&b->locks);
        for (unsigned i = 0; i < nprocs; i++) {
            if (p[4 + i].revents & POLLIN)
                serve_listener(b, &b->procs.all[i]);
            else if (p[4 + i].revents)
                fd_close(&b->procs.all[i].listener);
        }
        if (p[2].revents)
            serve_hand(b);
        if (p[0].revents)
            serve_request(b);
        if (p[3].revents)
            serve_watch(b);
        if (p[1].revents) {
            struct signalfd_siginfo info;
            (void)!read(b->signals, &info, sizeof info);
            reap();
        }
    }
}

_Noreturn void init_main(const struct init_plan *plan, int hand) {
    static struct box b; /* not on the stack, where its zeros would have to be written */
    b.plan = *plan;
    b.hand = hand;
    b.req = b.signals = b.meminfo = b.watcher.timer = -1;
    b.procs.live = plan->live;
    struct err e;
    struct wire_out o;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "cloche-init");
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_SETMASK, &set, NULL);
    b.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (set_up(&b, &o, &e) < 0) {
        wire_begin(&o, WIRE_I_BROKEN);
        wire_put_str(&o, e.text);
        wire_send(hand, &o, &e);
        _exit(1);
    }
    if (wire_send(hand, &o, &e) != WIRE_SENT)
        _exit(1);
    /* Only what we serve stays open; the other ends now belong to others. */
    int keep[] = {b.req, b.hand, b.signals, b.workspace};
    for (int i = 0; i < 4; i++)
        keep[i] = fcntl(keep[i], F_DUPFD_CLOEXEC, 100 + 10 * i);
    close_range(3, 99, 0);
    b.req = keep[0], b.hand = keep[1], b.signals = keep[2], b.workspace = keep[3];
    int size = 1 << 20; /* room for notes and replies; best effort */
    setsockopt(b.req, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    struct err ignored;
    fd_set_nonblock(b.req, &ignored);
    prctl(PR_SET_DUMPABLE, 0);
    serve(&b);
}
