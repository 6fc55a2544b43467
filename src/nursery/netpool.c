/* See netpool.h. The process that calls this (the nursery) wanders from namespace to namespace; its
 * next clone() is born in the one it is in. */

#include "nursery/netpool.h"

#include "base/buf.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const names[NET_TABLES_] = {"snmp", "snmp6", "unix", "sockstat"};

static void drop(struct net *n) {
    fd_close(&n->ns);
    fd_close_all(n->tables, NET_TABLES_);
}

/* Out of the way: a new init closes what is below its own descriptor (see boxes.c). */
static int move_up(int fd) {
    int up = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 500);
    if (up < 0)
        return fd;
    close(fd);
    return up;
}

static int open_all(struct net *n, struct err *e) {
    *n = (struct net){.ns = move_up(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC))};
    bool good = n->ns >= 0;
    for (int i = 0; i < NET_TABLES_; i++) {
        char path[64] = "/proc/self/net/";
        strncat(path, names[i], sizeof path - strlen(path) - 1);
        n->tables[i] = open(path, O_RDONLY | O_CLOEXEC);
        if (n->tables[i] < 0 && errno == ENOENT) /* no IPv6 */
            n->tables[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        n->tables[i] = move_up(n->tables[i]);
        good = good && n->tables[i] >= 0;
    }
    if (good)
        return 0;
    err_sys(e, "open the tables of a network namespace");
    drop(n);
    return -1;
}

static int loopback_up(struct err *e) {
    AUTO_FD s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = {.ifr_name = "lo"};
    if (s < 0 || ioctl(s, SIOCGIFFLAGS, &r) < 0)
        return err_sys(e, "read the flags of lo");
    r.ifr_flags |= IFF_UP;
    return ioctl(s, SIOCSIFFLAGS, &r) < 0 ? err_sys(e, "bring lo up") : 0;
}

/* Bounds on memory that no control group is charged for: the buffers of TCP, which grow to the last
 * of the three numbers, many megabytes by default (see init/sockets.c), and of which the machine
 * has one pot for all (net.ipv4.tcp_mem); connections that
 * nobody has accepted yet, with all that was sent through them (seen: 2.4 GiB); and closed ones in
 * TIME_WAIT. And a way to send that needs no timers, whatever the host's is: reno is in every
 * kernel. In a container the files may be read-only. */
static void bound_sockets(void) {
    static const char *const bounds[][2] = {
        {"/proc/sys/net/ipv4/tcp_rmem", "4096 32768 212992"},
        {"/proc/sys/net/ipv4/tcp_wmem", "4096 16384 212992"},
        {"/proc/sys/net/core/somaxconn", "16"},
        {"/proc/sys/net/ipv4/tcp_max_tw_buckets", "1024"},
        {"/proc/sys/net/ipv4/tcp_congestion_control", "reno"},
    };
    struct err e;
    for (unsigned i = 0; i < sizeof bounds / sizeof *bounds; i++)
        (void)file_write_at(AT_FDCWD, bounds[i][0], bounds[i][1], &e);
}

/* These tables have figures of the whole machine among those of the namespace: how many sockets,
 * how much memory, how many packets. We may change their mode as root of the namespace's owner, and
 * the kernel keeps it with the namespace. With a single id a sandbox has our id, but none of our
 * capabilities. */
static int close_tables(struct err *e) {
    static const char *const shared[] = {"/proc/self/net/protocols", "/proc/self/net/sockstat",
                                         "/proc/self/net/softnet_stat"};
    for (unsigned i = 0; i < sizeof shared / sizeof *shared; i++) {
        if (chmod(shared[i], 0) < 0 && errno != ENOENT)
            return err_sys(e, "close %s", shared[i]);
    }
    return 0;
}

static int make(struct netpool *p, struct net *ret, struct err *e) {
    if (unshare(CLONE_NEWNET) < 0)
        return err_sys(e, "make a network namespace");
    if (loopback_up(e) < 0 || open_all(ret, e) < 0)
        return -1;
    if (close_tables(e) < 0) { /* to all but us */
        drop(ret);
        return -1;
    }
    bound_sockets();
    p->made++;
    return 0;
}

int netpool_init(struct netpool *p, struct err *e) {
    *p = (struct netpool){0};
    if (make(p, &p->spare[0], e) < 0)
        return -1;
    p->nspare = 1;
    return 0;
}

void netpool_done(struct netpool *p) {
    while (p->nspare)
        drop(&p->spare[--p->nspare]);
    *p = (struct netpool){0};
}

int netpool_enter(struct netpool *p, struct net *ret, struct err *e) {
    if (!p->nspare)
        return make(p, ret, e);
    *ret = p->spare[--p->nspare];
    if (setns(ret->ns, CLONE_NEWNET) < 0) {
        err_sys(e, "enter a network namespace");
        drop(ret);
        return -1;
    }
    p->reused++;
    return 0;
}

/* SECURITY: a socket may outlive all processes for a while, in a message that nobody will read; and
 * with it its abstract name, which others would find taken. Sockets without names (the server may
 * not have closed its ends yet) are nobody's business. */
static bool has_names(const struct net *n) {
    static const char none[] = "sockets: used 0\n"; /* nor in messages: seen at once */
    char text[2048]; /* one read gives a page at most: more sockets than fit in here are too many */
    if (pread(n->tables[NET_SOCKSTAT], text, sizeof none, 0) >= (ssize_t)sizeof none - 1 &&
        memcmp(text, none, sizeof none - 1) == 0)
        return false;
    ssize_t len = pread(n->tables[NET_UNIX], text, sizeof text, 0);
    return len < 0 || len == (ssize_t)sizeof text || memchr(text, '@', (size_t)len);
}

void netpool_give_back(struct netpool *p, struct net *n, bool used) {
    if (n->ns < 0)
        return;
    if (!used && !has_names(n) && p->nspare < NETPOOL_MAX) {
        p->spare[p->nspare++] = *n;
    } else {
        p->dropped++;
        drop(n);
    }
    n->ns = -1;
}
