/* See hold.h. Theory of operation. Programs may listen on the same port, on every address; a bind
 * beside them is forced by TCP_REPAIR, with which listen() works as well. */

#include "sandbox/egress/hold.h"

#include "base/fd.h"
#include "net/bounds.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/time.h>

#ifndef TCP_REPAIR
#define TCP_REPAIR 19
#endif
#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND 78
#endif
enum { REPAIR_ON = 1, REPAIR_OFF_NO_PROBE = -1 };

#define PATIENCE_US  5000
#define ANSWER_BYTES (128 << 10) /* the kernel doubles it; what outside sends waits in it */

static int set(int fd, int level, int option, int value) {
    return setsockopt(fd, level, option, &value, sizeof value);
}

static int share_port(int fd) {
    return set(fd, SOL_SOCKET, SO_REUSEADDR, 1) < 0 || set(fd, SOL_SOCKET, SO_REUSEPORT, 1) < 0 ? -1
                                                                                                : 0;
}

/* A program that has closed is forgotten by its kernel without a word, while a silent host outside
 * may keep the connection open for ever: a probe then gets a reset. */
static int probe_idle(int fd) {
    return set(fd, SOL_SOCKET, SO_KEEPALIVE, 1) < 0 ||
                   set(fd, IPPROTO_TCP, TCP_KEEPIDLE, NET_KEEPALIVE_SECONDS) < 0 ||
                   set(fd, IPPROTO_TCP, TCP_KEEPINTVL, NET_KEEPALIVE_SECONDS) < 0
               ? -1
               : 0;
}

/* It may be bound to any address. */
static int open_free(int family, int *ret_fd, struct err *e) {
    AUTO_FD fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    bool v4 = family == AF_INET;
    if (fd < 0)
        return err_sys(e, "socket");
    if (set(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_FREEBIND : IPV6_FREEBIND, 1) < 0)
        return err_sys(e, "bind to any address");
    *ret_fd = fd_take(&fd);
    return 0;
}

/* Bound to the address, whoever else is. */
static int bind_forced(const struct end *to, int *ret_fd, struct err *e) {
    struct sockaddr_storage address;
    socklen_t len = net_addr_to(&to->at, to->port, &address);
    AUTO_FD fd = -1;
    if (open_free(address.ss_family, &fd, e) < 0)
        return -1;
    if (share_port(fd) < 0)
        return err_sys(e, "share a port");
    if (set(fd, IPPROTO_TCP, TCP_REPAIR, REPAIR_ON) < 0)
        return err_sys(e, "TCP_REPAIR");
    if (bind(fd, (const struct sockaddr *)&address, len) < 0)
        return err_sys(e, "bind to a destination");
    *ret_fd = fd_take(&fd);
    return 0;
}

int hold_open(const struct end *to, int *ret_fd, struct err *e) {
    struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog program = {.len = 1, .filter = &drop};
    AUTO_FD fd = -1;
    if (bind_forced(to, &fd, e) < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) < 0)
        return err_sys(e, "attach the filter that drops");
    if (listen(fd, 1) < 0)
        return err_sys(e, "listen on a destination");
    *ret_fd = fd_take(&fd);
    return 0;
}

/* Beside connections only, not beside listeners: theirs would be called. What is accepted shares
 * its port with both. */
int hold_listen(const struct end *to, int *ret_fd, struct err *e) {
    struct sockaddr_storage address;
    socklen_t len = net_addr_to(&to->at, to->port, &address);
    AUTO_FD fd = -1;
    if (open_free(address.ss_family, &fd, e) < 0)
        return -1;
    if (set(fd, SOL_SOCKET, SO_REUSEADDR, 1) < 0 ||
        bind(fd, (const struct sockaddr *)&address, len) < 0 || listen(fd, 1) < 0 ||
        set(fd, SOL_SOCKET, SO_REUSEPORT, 1) < 0)
        return err_sys(e, "listen on a destination");
    *ret_fd = fd_take(&fd);
    return 0;
}

static void on_alarm(int signal) {
    (void)signal;
}

void hold_alarm(void) {
    const struct sigaction interrupts = {.sa_handler = on_alarm};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    sigaction(SIGALRM, &interrupts, NULL);
}

/* The alarm comes again and again: it may come before we wait. */
int hold_connect(int caller, const struct sockaddr *address, socklen_t len) {
    const struct timeval patience = {.tv_usec = PATIENCE_US};
    const struct itimerval alarm = {patience, patience}, none = {0};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    setitimer(ITIMER_REAL, &alarm, NULL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    int errnum = connect(caller, address, len) < 0 ? errno : 0;
    sigprocmask(SIG_BLOCK, &set, NULL);
    setitimer(ITIMER_REAL, &none, NULL);
    return errnum;
}

int hold_accept(int listener, struct end *ret_from, int *ret_fd, struct err *e) {
    struct sockaddr_storage from;
    socklen_t len = sizeof from;
    AUTO_FD fd = accept4(listener, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return err_sys(e, "accept");
    net_addr_from(&from, len, &ret_from->at, &ret_from->port);
    *ret_fd = fd_take(&fd);
    return 0;
}

int hold_dress(int fd, struct err *e) {
    return set(fd, SOL_SOCKET, SO_SNDBUF, ANSWER_BYTES) < 0 || probe_idle(fd) < 0
               ? err_sys(e, "set up an answer")
               : 0;
}

int hold_answer(const struct end *from, const struct end *to, int *ret_fd, struct err *e) {
    struct sockaddr_storage address;
    socklen_t len = net_addr_to(&from->at, from->port, &address);
    AUTO_FD fd = -1;
    if (bind_forced(to, &fd, e) < 0)
        return -1;
    /* The end of a repair takes the sharing back: without it the program could not listen on this
     * port while it is connected. */
    if (set(fd, IPPROTO_TCP, TCP_REPAIR, REPAIR_OFF_NO_PROBE) < 0 || share_port(fd) < 0)
        return err_sys(e, "end the repair");
    if (hold_dress(fd, e) < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&address, len) < 0 && errno != EINPROGRESS)
        return err_sys(e, "open simultaneously");
    *ret_fd = fd_take(&fd);
    return 0;
}
