/* See unlisted.h. Theory of operation.
 *
 * A socket is in no list of the kernel's before it has a port and after its connection was reset or
 * is over. One of the first kind holds nothing, one of the second may be full, and the list cannot
 * tell how many there are of which. But init may look at the descriptors of every process, and a
 * socket says of itself what it holds.
 *
 * SECURITY: the program goes on meanwhile. Sockets that it moves about, or has in messages only,
 * are not found; whoever counts must take those for full. So that none is found which the count
 * does not have, all of them are kept from ending until both is done: then what was found is part
 * of what is counted, whatever the program closes and makes. */

#include "init/unlisted.h"

#include "base/clock.h"
#include "base/fd.h"
#include "init/pages.h"
#include "init/sockets.h"
#include "init/watch_look.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif
#ifndef SO_COOKIE
#define SO_COOKIE 57
#endif

/* The socket that a link in /proc/PID/fd stands for; 0: it is none. */
static ino_t socket_of(int dir, const char *name) {
    char to[64];
    ssize_t n = readlinkat(dir, name, to, sizeof to - 1);
    if (n <= 0)
        return 0;
    to[n] = 0;
    return strncmp(to, "socket:[", 8) == 0 ? (ino_t)strtoull(to + 8, NULL, 10) : 0;
}

static bool is_known(const struct unlisted *u, ino_t ino) {
    for (unsigned i = 0; i < u->n; i++) {
        if (u->all[i].ino == ino)
            return true;
    }
    return false;
}

static bool get(int fd, int option, void *to, socklen_t len) {
    socklen_t got = len;
    return getsockopt(fd, SOL_SOCKET, option, to, &got) == 0 && got == len;
}

static void take_one(struct unlisted *u, struct sockets *s, int process, int number, ino_t ino) {
    struct unlisted_one *one = &u->all[u->n];
    int domain = 0;
    AUTO_FD fd = (int)syscall(SYS_pidfd_getfd, process, number, 0);
    if (fd < 0 || !get(fd, SO_DOMAIN, &domain, sizeof domain) ||
        (domain != AF_INET && domain != AF_INET6))
        return;
    *one = (struct unlisted_one){.ino = ino, .outside = !sockets_inside(s, fd)};
    if (!get(fd, SO_COOKIE, &one->cookie, sizeof one->cookie))
        return;
    one->fd = fd_take(&fd);
    u->n++;
}

static void take_of(struct unlisted *u, struct sockets *s, pid_t pid, uint64_t until_cpu_ns) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    AUTO_FD process = (int)syscall(SYS_pidfd_open, pid, 0);
    DIR *d = process < 0 ? NULL : opendir(path);
    for (struct dirent *e;
         d && (e = readdir(d)) && u->n < UNLISTED_MOST && thread_cpu_ns() < until_cpu_ns;) {
        ino_t ino = socket_of(dirfd(d), e->d_name);
        if (ino && !is_known(u, ino))
            take_one(u, s, process, atoi(e->d_name), ino);
    }
    if (d)
        closedir(d);
}

void unlisted_take(struct unlisted *u, struct sockets *s, uint64_t until_cpu_ns) {
    DIR *d = opendir("/proc");
    u->n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        long pid = strtol(e->d_name, NULL, 10);
        if (pid > 1)
            take_of(u, s, (pid_t)pid, until_cpu_ns);
    }
    if (d)
        closedir(d);
}

void unlisted_mark(struct unlisted *u, const uint32_t cookie[2]) {
    uint64_t is = (uint64_t)cookie[1] << 32 | cookie[0];
    for (unsigned i = 0; i < u->n; i++)
        u->all[i].listed = u->all[i].listed || (!u->all[i].outside && u->all[i].cookie == is);
}

/* TCP tells how much of it is data; for UDP, and of what was sent, none is taken for data. */
static uint64_t held_by(int fd) {
    uint32_t memory[SK_MEMINFO_VARS] = {0};
    int type = 0, unread = 0;
    socklen_t len = sizeof memory;
    if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &len) < 0)
        return UINT32_MAX;
    if (get(fd, SO_TYPE, &type, sizeof type) && type == SOCK_STREAM)
        (void)ioctl(fd, FIONREAD, &unread);
    const struct queues q = {
        .received = memory[SK_MEMINFO_RMEM_ALLOC],
        .unread = unread > 0 ? (uint64_t)unread : 0,
        .sent = most(memory[SK_MEMINFO_WMEM_QUEUED], memory[SK_MEMINFO_WMEM_ALLOC]),
        .backlog = memory[SK_MEMINFO_BACKLOG]};
    return pages_held(&q);
}

struct unlisted_sum unlisted_sum(const struct unlisted *u) {
    struct unlisted_sum sum = {0};
    for (unsigned i = 0; i < u->n; i++) {
        if (u->all[i].listed)
            continue;
        sum.held += held_by(u->all[i].fd);
        *(u->all[i].outside ? &sum.outside : &sum.inside) += 1;
    }
    return sum;
}

void unlisted_drop(struct unlisted *u) {
    while (u->n)
        fd_close(&u->all[--u->n].fd);
}
