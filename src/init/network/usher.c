/* See usher.h. Theory of operation.
 *
 * The usher's work is the sandbox's: it joins the sandbox's control groups. A process that joins is
 * never refused, however many there are already, but one that is forked inside is. So what we fork
 * (the starter) joins, forks the usher, and ends; its status is an errno when it could not. Joining
 * can take a while: nobody waits for it but those whose verdict is there, in LINK_ASKED.
 *
 * The usher is the child of PID 1 from the beginning, and ends with it. It also ends with all the
 * others of the sandbox (I_KILL, or the kernel when memory runs out), as does what goes through it;
 * whoever needs one next starts another. */

#include "init/network/usher.h"

#include "base/clock.h"
#include "base/fd.h"
#include "init/internal.h"
#include "sandbox/cgroup_attach.h"
#include "usher/usher.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RETRY_MS 100
#define MESSAGES 64 /* of one turn */

static _Noreturn void starter(const struct init *b, int channel) {
    const struct network *n = &b->network;
    struct usher_plan plan = {.channel = channel, .bytes = n->bytes, .page = n->usher.page};
    struct err e;
    _Static_assert((int)NAMES_SOCKETS == (int)USHER_NAMES, "in the same order");
    for (unsigned i = 0; i < USHER_NAMES; i++)
        plan.names[i] = n->names[i];
    if (cgroup_attach(b->plan.procs, b->plan.nprocs, &e) < 0)
        _exit(e.code);
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0)
        usher_main(&plan);
    n->usher.page->pid = pid;
    _exit(pid < 0 ? errno : 0);
}

int usher_start(struct init *b) {
    struct usher *u = &b->network.usher;
    struct err e;
    int pair[2];
    if (u->state != USHER_NONE)
        return 0;
    if (now_ms() < u->retry_ms)
        return EAGAIN;
    u->retry_ms = now_ms() + RETRY_MS;
    if (wire_pair(pair, &e) < 0)
        return e.code;
    AUTO_FD ours = pair[0];
    AUTO_FD theirs = pair[1];
    if (fd_set_nonblock(ours, &e) < 0 ||
        network_watch(&b->network, ours, EPOLLIN, EVENT_USHER, 0) < 0)
        return EAGAIN;
    pid_t pid = fork();
    if (pid == 0)
        starter(b, theirs);
    if (pid < 0)
        return errno;
    u->starter = pid;
    u->channel = fd_take(&ours);
    u->state = USHER_STARTING;
    return 0;
}

bool usher_tell(struct usher *u, const struct wire_out *o) {
    struct err e;
    return u->channel >= 0 && wire_send(u->channel, o, &e) == WIRE_SENT;
}

/* SECURITY: a sandbox can keep its usher from running, by using up its processors. */
void usher_order(struct usher *u, const struct wire_out *o) {
    if (!usher_tell(u, o))
        usher_end(u);
}

void usher_end(struct usher *u) {
    if (u->pid > 0)
        kill(u->pid, SIGKILL);
}

static void usher_lost(struct init *b, int errnum) {
    struct usher *u = &b->network.usher;
    fd_close(&u->channel);
    u->state = USHER_NONE;
    u->starter = u->pid = 0;
    u->page->namers = 0;
    names_usher_lost(b);
    links_usher_lost(b, errnum);
}

void usher_reaped(struct init *b, pid_t pid, int status) {
    struct usher *u = &b->network.usher;
    if (u->state != USHER_STARTING || pid != u->starter)
        return;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        usher_lost(b, WIFEXITED(status) ? WEXITSTATUS(status) : EAGAIN);
        return;
    }
    u->state = USHER_READY;
    u->starter = 0;
    u->pid = u->page->pid;
    links_usher_came(b);
}

static void usher_gone(struct init *b) {
    struct usher *u = &b->network.usher;
    int status = 0, errnum = EAGAIN;
    if (u->state == USHER_STARTING && waitpid(u->starter, &status, 0) == u->starter &&
        WIFEXITED(status) && WEXITSTATUS(status) != 0)
        errnum = WEXITSTATUS(status);
    usher_lost(b, errnum);
}

static bool usher_take(struct init *b, struct wire_in *in) {
    union {
        struct u_name name;
        struct u_hello hello;
        struct u_end end;
    } m;
    struct err e;
    if (u_name_get(in, &m.name, &e) == 0)
        names_on_name(b, &m.name);
    else if (u_hello_get(in, &m.hello, &e) == 0)
        link_on_hello(b, &m.hello);
    else if (u_end_get(in, &m.end, &e) == 0)
        link_on_end(b, &m.end);
    else
        return false;
    return true;
}

void usher_serve(struct init *b) {
    struct usher *u = &b->network.usher;
    for (unsigned i = 0; i < MESSAGES && u->channel >= 0; i++) {
        struct err e;
        AUTO_WIRE_IN in;
        in.nfds = in.fd_at = 0;
        enum wire_got got = wire_recv(u->channel, &in, &e);
        if (got == WIRE_NONE)
            return;
        if (got != WIRE_GOT || !usher_take(b, &in))
            usher_gone(b);
    }
}
