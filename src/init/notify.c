/* See notify.h. What reaches a seccomp listener is either refused with its errno and told to the
 * server, or answered: sockets that reach the network namespace are made here and counted
 * (sockets.c), locks on files are taken here (locks.c), and a few calls have their whole answer
 * from here (answers.c). */

#include "init/notify.h"

#include "base/fd.h"
#include "init/answers.h"
#include "init/caller.h"
#include "init/network/ask.h"
#include "init/questions.h"
#include "sandbox/seccomp.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#define TOLD_MAX 32 /* refusals of one process in a second */

static void tell_refusal(struct init *b, uint32_t process, const struct seccomp_refusal *r) {
    struct wire_out o;
    struct err e;
    i_denied_put(&o, &(struct i_denied){process, r->op, r->detail, r->rule});
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

/* The nursery and the server know it before the call goes on. */
static void tell_of_use(struct init *b) {
    struct wire_out o;
    struct err e;
    *b->plan.used = 1;
    wire_begin(&o, WIRE_I_NET);
    b->told_of_use = b->told_of_use || wire_send(b->req, &o, &e) == WIRE_SENT;
}

/* The errno of the answer. */
static int refuse(struct init *b, struct proc *from, int nr, const uint64_t args[6]) {
    struct seccomp_refusal scratch;
    const struct seccomp_refusal *r = seccomp_refusal(nr, args, &scratch);
    if (is_news(from, nr, b->plan.live))
        tell_refusal(b, from->number,
                     r); /* before the answer: it is there when the program goes on */
    return r->errnum;
}

static void serve_call(struct init *b, struct proc *from, struct caller *c) {
    switch (seccomp_service(c->nr, c->args)) {
    case SECCOMP_SOCKET:
        if (!b->told_of_use)
            tell_of_use(b);
        pages_begin(&b->pages);
        sockets_make(&b->sockets, c, network_sockets(&b->network));
        return;
    case SECCOMP_ACCEPT:
        sockets_accept(&b->sockets, c, network_sockets(&b->network));
        return;
    case SECCOMP_BUFFER:
        sockets_buffer(c);
        return;
    case SECCOMP_REUSE:
        sockets_reuse(c);
        return;
    case SECCOMP_LOCK:
        locks_serve(&b->locks, c);
        return;
    case SECCOMP_SYSINFO: /* whoever called may wait for what the server has told us (RUN_MEMORY) */
        while (questions_serve(b))
            ;
        answers_sysinfo(c, b->plan.limits.memory_mb);
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
    case SECCOMP_WATCH:
        epolls_add(&b->epolls, c);
        return;
    case SECCOMP_IFACE:
        answers_interface(c);
        return;
    case SECCOMP_CONNECT:
        network_connect(b, from->number, c);
        return;
    case SECCOMP_REFUSE:
        caller_answer(c, refuse(b, from, c->nr, c->args));
    }
}

void notify_serve(struct init *b, struct proc *from) {
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
