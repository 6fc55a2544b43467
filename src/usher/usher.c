/* See usher.h. Theory of operation.
 *
 * Init gives it pairs of connected sockets (U_RELAY): one of the sandbox's network namespace, at
 * whose other end is a program, and one of the host's, which the gate connected. Bytes are copied
 * between them until both sides have ended or one resets. It also answers what is sent to port 53
 * inside, with what the gate says of names (names.c), and looks at ClientHellos and at heads of
 * HTTP requests before they go out (check.c).
 *
 * It is the one place where bytes of a sandbox meet sockets of the host. So before its first byte
 * it has given up all else: it has no capability, no file, no other descriptor, cannot be traced,
 * and its filter (filter.c) leaves it no way to make a socket or to connect one. It does its work
 * in the control groups of the sandbox, which pays for it. Init sums up what it counts in a page
 * that both share. It ends with init, at the latest. */

#include "usher/usher.h"

#include "base/clock.h"
#include "base/fd.h"
#include "sandbox/caps.h"
#include "sandbox/cores.h"
#include "usher/filter.h"
#include "usher/names.h"
#include "usher/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define EVENTS  64
#define TICK_MS 1000
#define FILES   1024 /* two for each relay, and a few */
#define ASIDE   100  /* descriptors from here on are not yet in their place */

bool usher_watch(struct usher *u, int fd, uint32_t events, enum event kind, unsigned index) {
    struct epoll_event e = {.events = events, .data.u64 = (uint64_t)kind << 32 | index};
    return epoll_ctl(u->events, EPOLL_CTL_ADD, fd, &e) == 0;
}

void usher_tell_init(struct usher *u, const struct wire_out *o) {
    struct err e;
    if (wire_send(u->channel, o, &e) != WIRE_SENT)
        _exit(1);
}

/* ---- giving up ---- */

static int step_descriptors(struct usher *u, const struct usher_plan *p, struct err *e) {
    int at = FILTER_CHANNEL, aside[1 + USHER_NAMES];
    AUTO_FD null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return err_sys(e, "open /dev/null");
    for (int i = 0; i < 1 + USHER_NAMES; i++) { /* what is not there is the null device */
        int from = i == 0 ? p->channel : p->names[i - 1];
        aside[i] = fcntl(from < 0 ? null : from, F_DUPFD_CLOEXEC, ASIDE);
        if (aside[i] < 0)
            return err_sys(e, "move a descriptor");
    }
    for (int i = 0; i < 3; i++) {
        if (dup2(null, i) < 0)
            return err_sys(e, "dup2");
    }
    for (int i = 0; i < 1 + USHER_NAMES; i++) {
        if (dup3(aside[i], at + i, O_CLOEXEC) < 0)
            return err_sys(e, "dup3");
    }
    fd_take(&null); /* it may be one of those that were replaced; else it goes now */
    if (close_range((unsigned)(FILTER_NAMES + USHER_NAMES), ~0u, 0) < 0)
        return err_sys(e, "close_range");
    u->channel = FILTER_CHANNEL;
    for (int i = 0; i < USHER_NAMES; i++)
        u->names[i] = p->names[i] < 0 ? -1 : FILTER_NAMES + i;
    u->events = epoll_create1(EPOLL_CLOEXEC);
    return u->events < 0 ? err_sys(e, "epoll_create") : 0;
}

static int step_limits(struct err *e) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return err_sys(e, "getrlimit");
    files.rlim_max = files.rlim_max < FILES ? files.rlim_max : FILES;
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) < 0)
        return err_sys(e, "setrlimit");
    return cores_forbid(e);
}

static int step_rights(struct err *e) {
    if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(e, "prctl");
    if (caps_drop_all(e) < 0)
        return -1;
    prctl(PR_SET_NAME, "cloche-usher"); /* who bears it has nothing left */
    return filter_enter(e);
}

/* ---- serving ---- */

static bool take_limits(struct usher *u, struct wire_in *in) {
    struct u_limits m;
    struct err e;
    if (u_limits_get(in, &m, &e) < 0)
        return false;
    u->bytes = m.bytes;
    return true;
}

static void serve_channel(struct usher *u) {
    union {
        struct u_relay relay;
        struct u_close close;
        struct u_named named;
        struct u_helloed helloed;
    } m;
    struct err e;
    AUTO_WIRE_IN in;
    in.nfds = in.fd_at = 0;
    if (wire_recv(u->channel, &in, &e) != WIRE_GOT)
        _exit(0);
    if (u_relay_get(&in, &m.relay, &e) == 0)
        relay_new(u, &in, &m.relay);
    else if (u_close_get(&in, &m.close, &e) == 0)
        relay_close(u, m.close.id);
    else if (u_named_get(&in, &m.named, &e) == 0)
        names_answer(u, &m.named);
    else if (u_helloed_get(&in, &m.helloed, &e) == 0)
        relay_helloed(u, &m.helloed);
    else if (!take_limits(u, &in))
        _exit(1);
}

/* SECURITY: all that there are, before another byte goes anywhere. A sandbox can keep us from
 * running, and have much to do for us when we do. */
static void serve_orders(struct usher *u) {
    char first;
    while (recv(u->channel, &first, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
           (errno != EAGAIN && errno != EINTR))
        serve_channel(u);
}

static void serve_event(struct usher *u, const struct epoll_event *e) {
    unsigned index = (unsigned)e->data.u64;
    switch ((enum event)(e->data.u64 >> 32)) {
    case EVENT_CHANNEL:
        return; /* served already */
    case EVENT_INSIDE:
        relay_step(u, index, INSIDE, e->events);
        return;
    case EVENT_OUTSIDE:
        relay_step(u, index, OUTSIDE, e->events);
        return;
    case EVENT_NAMES:
        names_read(u, index);
        return;
    case EVENT_NAMER:
        namer_read(u, index);
        return;
    }
}

static _Noreturn void serve(struct usher *u) {
    for (uint64_t looked_ms = 0;;) {
        struct epoll_event e[EVENTS];
        int n = epoll_wait(u->events, e, EVENTS, u->deadlines || u->waits ? TICK_MS : -1);
        if (n < 0 && errno != EINTR)
            _exit(1);
        serve_orders(u);
        for (int i = 0; i < n; i++)
            serve_event(u, &e[i]);
        if (now_ms() < looked_ms + TICK_MS)
            continue;
        looked_ms = now_ms();
        relays_look_after(u);
        names_look_after(u);
    }
}

_Noreturn void usher_main(const struct usher_plan *p) {
    static struct usher u;
    struct err e;
    u.page = p->page;
    u.bytes = p->bytes;
    setsid();
    if (step_descriptors(&u, p, &e) < 0 || step_limits(&e) < 0 || step_rights(&e) < 0 ||
        !usher_watch(&u, u.channel, EPOLLIN, EVENT_CHANNEL, 0))
        _exit(1);
    names_start(&u);
    serve(&u);
}
