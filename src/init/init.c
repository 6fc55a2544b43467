/* PID 1 of a sandbox: a few hundred lines between hostile code and everything else.
 *
 * Theory of operation. The nursery clones this process into fresh pid, mount, ipc and uts
 * namespaces; it is root of the nursery's user namespace, the kernels below it are not. It mounts
 * the private places, makes the pipes and sockets (whoever makes a pipe pays for its buffer), sends
 * all ends to the nursery and goes on to serve these, one message at a time, blocking on none of
 * them, but for a server that leaves its answers unread:
 *   - the server's questions on the request socket (questions.c has the table, files.c those about
 * files);
 *   - the nursery, which asks for the ends of one more process, and the listeners that kernels hand
 * over before any user code, on the `hand` socket;
 *   - these seccomp listeners (procs.h): what the filter leaves to us (notify.c);
 *   - children that it inherits: they are reaped.
 * It is not dumpable, holds no capability that reaches outside the nursery, and dies with its
 * parent. When the server's end of the request socket is gone, nobody wants this sandbox any more:
 * it leaves, and the whole pid namespace with it. */

#include "init/init.h"

#include "base/fd.h"
#include "init/ends.h"
#include "init/internal.h"
#include "init/notify.h"
#include "init/questions.h"
#include "sandbox/proc.h"
#include "sandbox/root.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WINDOW_MS 100
#define WORK_MS   25 /* of each window, for the calls of the sandbox */
#define OWN       6  /* descriptors that are polled beside the listeners */

/* A one-shot sandbox has its program file, still empty, from the start. The directory's time of
 * modification is set a second back, so that a later look at it tells whether a name was made,
 * removed or renamed in it, however coarse the kernel's clock. */
static int open_workspace(struct init *b, int *ret_path, struct err *e) {
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

static int set_up(struct init *b, struct wire_out *o, struct err *e) {
    struct root_private places = {.uid = b->plan.uid,
                                  .disk_mb = b->plan.limits.disk_mb,
                                  .disk_files = disk_files(b->plan.limits.disk_mb),
                                  .terminals = b->plan.config->terminals,
                                  .mounts = b->plan.mounts,
                                  .nmounts = b->plan.nmounts,
                                  .nallowed = b->plan.nallowed,
                                  .has_trees = b->plan.has_trees};
    pages_open(&b->pages, b->plan.machine);
    if (binds_open(&b->binds, &b->plan, e) < 0 || root_private(&places, e) < 0)
        return -1;
    struct ends s;
    int req[2], workspace = -1;
    if (ends_make(b->plan.uid, &s, e) < 0 || wire_pair(req, e) < 0 ||
        open_workspace(b, &workspace, e) < 0)
        return -1; /* the process ends: nothing leaks */
    struct i_ready m = {.ends = ends_theirs(&s)};
    m.ours.n = SANDBOX_SNMP;
    m.ours.fd[SANDBOX_CTL] = s.ctl[0];
    m.ours.fd[SANDBOX_REQ] = req[0];
    m.ours.fd[SANDBOX_STDIN] = s.ours[0];
    m.ours.fd[SANDBOX_STDOUT] = s.ours[1];
    m.ours.fd[SANDBOX_STDERR] = s.ours[2];
    m.ours.fd[SANDBOX_WORKSPACE] = workspace;
    _Static_assert(SANDBOX_SNMP == 6, "one of each");
    i_ready_put(o, &m);
    b->req = req[1];
    return 0;
}

/* The ends of one more process, for the nursery. */
static void give_more(struct init *b) {
    struct ends s;
    struct err e;
    struct wire_out o;
    memset(&s, 0xff, sizeof s);
    int r = procs_full(&b->procs)
                ? err_set(&e, EAGAIN,
                          "a sandbox has %d kernels and commands at once at most; "
                          "end one first",
                          PROCS_MAX)
                : ends_make(b->plan.uid, &s, &e);
    if (r < 0)
        i_broken_put(&o, &(struct i_broken){.why = e.text});
    else
        i_ready_put(&o, &(struct i_ready){
                            .ours = {KERNEL_OWNER_FDS, {s.ctl[0], s.ours[0], s.ours[1], s.ours[2]}},
                            .ends = ends_theirs(&s)});
    wire_send(b->hand, &o, &e);
    ends_done(&s);
}

/* SECURITY: a kernel hands its listener over before any user code runs in it; only a live sandbox
 * gets a second one. */
static void take_listener(struct init *b, struct wire_in *in) {
    struct k_hand m;
    struct err e;
    if (k_hand_get(in, &m, &e) == 0)
        procs_add(&b->procs, m.number, (pid_t)m.pid, wire_keep(in, m.listener));
    if (!b->plan.live)
        fd_close(&b->hand);
}

static void serve_hand(struct init *b) {
    struct err e;
    struct wire_in in;
    in.nfds = in.fd_at = 0;
    enum wire_got got = wire_recv(b->hand, &in, &e);
    if (got == WIRE_NONE)
        return;
    if (got == WIRE_GOT && in.type == WIRE_K_HAND)
        take_listener(b, &in);
    else if (got == WIRE_GOT && in.type == WIRE_I_MORE && b->plan.live)
        give_more(b);
    else
        fd_close(&b->hand); /* the nursery has closed its end, or asks for what it may not */
    wire_in_done(&in);
}

static void reap(struct init *b) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        network_reaped(b, pid, status);
}

/* What no question asked for: it is lost when the socket is full. */
static bool tell_server(struct init *b, const struct wire_out *o) {
    struct err e;
    return wire_send(b->req, o, &e) == WIRE_SENT;
}

/* For the processes that were too many it is over already. */
static void tell_limit(struct init *b, enum limit_kind hit) {
    struct wire_out o;
    i_limit_put(&o, &(struct i_limit){.kind = hit});
    tell_server(b, &o);
    if (hit != LIMIT_PIDS)
        questions_kill_all();
}

static void serve_watch(struct init *b) {
    struct wire_out o;
    enum limit_kind hit = watch_tick(&b->watcher);
    unsigned tasks = b->watcher.tasks;
    if (b->plan.live && tasks != b->told_tasks) {
        i_tasks_put(&o, &(struct i_tasks){.tasks = tasks});
        if (tell_server(b, &o))
            b->told_tasks = tasks;
    }
    if (hit != LIMIT_NONE)
        tell_limit(b, hit);
}

static void serve_pages(struct init *b) {
    const struct pages_others o = {.sockets = &b->sockets,
                                   .netlink = sockets_netlink(&b->sockets),
                                   .ours = network_unlisted(&b->network),
                                   .outside = links_outside(&b->network)};
    if (pages_tick(&b->pages, &o))
        tell_limit(b, LIMIT_MEMORY);
}

static uint64_t clock_ms(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Nobody is charged for the time that the sandbox's calls take us, so it is bounded: after WORK_MS
 * of it they wait for the next window. Returns in how many milliseconds that is, 0: now. */
static int rest_ms(struct init *b) {
    uint64_t now = clock_ms(CLOCK_MONOTONIC), work = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    if (now >= b->window_ms + WINDOW_MS) {
        b->window_ms = now;
        b->work_ms = work;
    }
    return work - b->work_ms < WORK_MS ? 0 : (int)(b->window_ms + WINDOW_MS - now);
}

/* -1 is never. */
static int sooner(int a, int b) {
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

static _Noreturn void serve(struct init *b) {
    for (;;) {
        int rest = rest_ms(b);
        struct pollfd p[OWN + PROCS_MAX] = {
            {.fd = b->req, .events = POLLIN},
            {.fd = b->signals, .events = POLLIN},
            {.fd = b->hand, .events = POLLIN},
            {.fd = b->watcher.timer, .events = POLLIN},
            {.fd = b->pages.timer, .events = POLLIN},
            {.fd = rest ? -1 : network_fd(&b->network), .events = POLLIN}};
        unsigned nprocs = b->procs.top;
        for (unsigned i = 0; i < nprocs; i++) {
            const struct proc *one = &b->procs.all[i];
            p[OWN + i].fd = one->pid && !rest ? one->listener : -1;
            p[OWN + i].events = POLLIN;
        }
        int patience = sooner(locks_patience(&b->locks), network_patience(&b->network));
        if (poll(p, OWN + nprocs, rest ? rest : patience) < 0 && errno != EINTR)
            _exit(1);
        if (patience >= 0 && !rest)
            locks_tick(&b->locks);
        if (!rest) /* before any call: what ended is not counted any more */
            network_serve(b);
        for (unsigned i = 0; i < nprocs; i++) {
            if (p[OWN + i].revents & POLLIN)
                notify_serve(b, &b->procs.all[i]);
            else if (p[OWN + i].revents)
                fd_close(&b->procs.all[i].listener);
        }
        if (p[2].revents)
            serve_hand(b);
        if (p[0].revents)
            questions_serve(b);
        if (p[3].revents)
            serve_watch(b);
        if (p[4].revents)
            serve_pages(b);
        if (p[1].revents) {
            struct signalfd_siginfo info;
            (void)!read(b->signals, &info, sizeof info);
            reap(b);
        }
    }
}

_Noreturn void init_main(const struct init_plan *plan, int hand) {
    static struct init b; /* not on the stack, where its zeros would have to be written */
    b.plan = *plan;
    b.hand = hand;
    b.req = b.signals = b.watcher.timer = -1;
    b.meminfo = PROC_MEMORY_BORN;
    b.procs.live = plan->live;
    network_init(&b.network);
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
        i_broken_put(&o, &(struct i_broken){.why = e.text});
        wire_send(hand, &o, &e);
        _exit(1);
    }
    if (wire_send(hand, &o, &e) != WIRE_SENT)
        _exit(1);
    /* Only what we serve stays open; the other ends now belong to others. */
    int keep[] = {b.req, b.hand, b.signals, b.workspace}, procs[PROCS_FDS];
    for (int i = 0; i < 4; i++)
        keep[i] = fcntl(keep[i], F_DUPFD_CLOEXEC, 100 + 10 * i);
    for (unsigned i = 0; i < plan->nprocs; i++)
        procs[i] = fcntl(plan->procs[i], F_DUPFD_CLOEXEC, 140);
    b.plan.procs = procs;
    binds_keep(&b.binds, 200);
    close_range(3, 99, 0);
    b.req = keep[0], b.hand = keep[1], b.signals = keep[2], b.workspace = keep[3];
    int size = 1 << 20; /* room for notes and replies; best effort */
    setsockopt(b.req, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    struct err ignored;
    fd_set_nonblock(b.req, &ignored);
    prctl(PR_SET_DUMPABLE, 0);
    serve(&b);
}
