/* See facts.h. A connect is held, answered, and failed, as init does it, within one process.
 * Nothing waits for long: what has to happen on the loopback has happened within the call, or soon
 * after. */

#include "sandbox/egress/facts.h"

#include "base/fd.h"
#include "sandbox/egress/anyip.h"
#include "sandbox/egress/diag.h"
#include "sandbox/egress/hold.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

#define PATIENCE_MS 5000
#define PORT        443

/* One connect on its way. */
struct attempt {
    struct end to;
    struct syn syn;
    int raw, diag, served, hold, caller, answer;
};

/* Each returns 0, or -1 with errno. */
typedef int fact_fn(struct attempt *a);

static int no(int errnum) {
    errno = errnum;
    return -1;
}

static int loopback_up(void) {
    AUTO_FD s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = {.ifr_name = "lo"};
    if (s < 0 || ioctl(s, SIOCGIFFLAGS, &r) < 0)
        return -1;
    r.ifr_flags |= IFF_UP;
    return ioctl(s, SIOCSIFFLAGS, &r);
}

static int try_cookie(struct attempt *a) {
    uint64_t cookie;
    socklen_t len = sizeof cookie;
    AUTO_FD s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)a;
    return s < 0 ? -1 : getsockopt(s, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len);
}

/* There is somebody on the same port, on every address. */
static int try_hold(struct attempt *a) {
    struct sockaddr_storage any;
    struct err e;
    socklen_t len = net_addr_to(&a->to.at, PORT, &any);
    if (any.ss_family == AF_INET)
        ((struct sockaddr_in *)&any)->sin_addr.s_addr = INADDR_ANY;
    else
        ((struct sockaddr_in6 *)&any)->sin6_addr = in6addr_any;
    a->served = socket(any.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (a->served < 0 || bind(a->served, (const struct sockaddr *)&any, len) < 0 ||
        listen(a->served, 1) < 0)
        return -1;
    return hold_open(&a->to, &a->hold, &e) < 0 ? no(e.code) : 0;
}

static int try_connect(struct attempt *a) {
    struct sockaddr_storage to;
    struct tcp_info info;
    socklen_t len = net_addr_to(&a->to.at, a->to.port, &to), size = sizeof info;
    a->caller = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (a->caller < 0)
        return -1;
    if (connect(a->caller, (const struct sockaddr *)&to, len) == 0 || errno != EINPROGRESS)
        return no(errno ? errno : EISCONN);
    if (getsockopt(a->caller, IPPROTO_TCP, TCP_INFO, &info, &size) < 0)
        return -1;
    return info.tcpi_state == TCP_SYN_SENT ? 0 : no(EPROTO);
}

/* The raw socket sees the SYNs of simultaneous opens as well. */
static int try_see(struct attempt *a) {
    struct pollfd p = {.fd = a->raw, .events = POLLIN};
    while (poll(&p, 1, PATIENCE_MS) > 0) {
        if (syn_next(a->raw, &a->syn) && end_same(&a->syn.to, &a->to))
            return 0;
    }
    return no(ETIMEDOUT);
}

static int try_diagnose(struct attempt *a) {
    struct err e;
    if (a->diag < 0 && diag_open(&a->diag, &e) < 0)
        return no(e.code);
    return diag_is_opening(a->diag, &a->syn) ? 0 : no(ENOENT);
}

/* The errno that the caller's socket ends with; 0: it is connected. */
static int outcome(const struct attempt *a) {
    struct pollfd p = {.fd = a->caller, .events = POLLOUT};
    int errnum = 0;
    socklen_t len = sizeof errnum;
    if (poll(&p, 1, PATIENCE_MS) <= 0)
        return ETIMEDOUT;
    return getsockopt(a->caller, SOL_SOCKET, SO_ERROR, &errnum, &len) < 0 ? errno : errnum;
}

static int try_answer(struct attempt *a) {
    struct err e;
    char byte = 'x';
    fd_close(&a->hold);
    if (hold_answer(&a->syn.from, &a->to, &a->answer, &e) < 0)
        return no(e.code);
    struct pollfd p = {.fd = a->answer, .events = POLLIN};
    int errnum = outcome(a);
    if (errnum)
        return no(errnum);
    if (send(a->caller, &byte, 1, MSG_NOSIGNAL) != 1)
        return -1;
    return poll(&p, 1, PATIENCE_MS) == 1 && recv(a->answer, &byte, 1, MSG_DONTWAIT) == 1
               ? 0
               : no(ETIMEDOUT);
}

static void close_attempt(struct attempt *a) {
    fd_close(&a->served);
    fd_close(&a->hold);
    fd_close(&a->caller);
    fd_close(&a->answer);
}

static int try_failure(struct attempt *a, int errnum) {
    struct err e;
    close_attempt(a);
    a->to.port++; /* nothing of the one before is on its way here */
    if (hold_open(&a->to, &a->hold, &e) < 0)
        return no(e.code);
    if (try_connect(a) < 0 || try_see(a) < 0)
        return -1;
    if (syn_fail(&a->syn, errnum, &e) < 0)
        return no(e.code);
    int got = outcome(a);
    return got == errnum ? 0 : no(got ? got : EISCONN);
}

static int try_reset(struct attempt *a) {
    return try_failure(a, ECONNREFUSED);
}

static int try_host(struct attempt *a) {
    return try_failure(a, EHOSTUNREACH);
}

static int try_network(struct attempt *a) {
    return try_failure(a, ENETUNREACH);
}

static const struct {
    const char *words;
    fact_fn *fn; /* NULL: it is tried once, not for each family */
} facts[] = {
    {"a socket tells which network namespace it is of (SO_NETNS_COOKIE, Linux 5.14)", NULL},
    {"a route of type local takes other addresses to the loopback", NULL},
    {"a raw socket in a network namespace of one's own", NULL},
    {"TCP_REPAIR binds a listener beside that of another", try_hold},
    {"a listener whose filter drops everything leaves a connect unanswered", try_connect},
    {"a raw socket sees the first packet of a connect", try_see},
    {"the diagnosis of sockets (tcp_diag) finds a connect that is being tried", try_diagnose},
    {"a socket bound to the destination answers it by simultaneous open", try_answer},
    {"a crafted reset ends a connect with ECONNREFUSED", try_reset},
    {"a crafted ICMP message ends it with EHOSTUNREACH", try_host},
    {"a crafted ICMP message ends it with ENETUNREACH", try_network},
};
#define FACTS ((int)(sizeof facts / sizeof *facts))

const char *egress_fact(int number) {
    return number >= 1 && number <= FACTS ? facts[number - 1].words : "";
}

static struct egress_finding found(int fact, int errnum) {
    return (struct egress_finding){.fact = fact, .errnum = errnum};
}

static struct egress_finding try_family(const char *address, int family) {
    struct attempt a = {.to.port = PORT, .raw = -1, .diag = -1, .served = -1, .hold = -1};
    struct egress_finding f = {0};
    struct err e;
    a.caller = a.answer = -1;
    net_addr_parse(address, strlen(address), &a.to.at);
    if (family == AF_INET6 && anyip_add_v6(&a.to.at, &e) < 0)
        return found(2, e.code);
    if (syn_open(family, &a.raw, &e) < 0)
        return found(3, e.code);
    for (int i = 0; i < FACTS && !f.fact; i++) {
        if (facts[i].fn && facts[i].fn(&a) < 0)
            f = found(i + 1, errno);
    }
    close_attempt(&a);
    fd_close(&a.raw);
    fd_close(&a.diag);
    return f;
}

void egress_try(struct egress_finding *ret) {
    bool v6 = false;
    struct err e;
    if (try_cookie(NULL) < 0)
        *ret = found(1, errno);
    else if (loopback_up() < 0)
        *ret = found(2, errno);
    else if (anyip_add(&v6, &e) < 0)
        *ret = found(2, e.code);
    else
        *ret = try_family("192.0.2.1", AF_INET);
    if (!ret->fact && v6)
        *ret = try_family("2001:db8::1", AF_INET6);
}
