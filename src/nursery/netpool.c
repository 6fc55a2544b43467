/* See netpool.h. The process that calls this (the nursery) wanders from namespace to namespace; its
 * next clone() is born in the one it is in. */

#include "nursery/netpool.h"

#include "base/buf.h"
#include "base/fd.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define TEXT_MAX 32768

/* Packets over loopback, protocol counters, sockets that still wait to die. What netstat would add
 * changes only when packets go over loopback. */
static const char *const tables[] = {"dev", "snmp", "snmp6", "sockstat", "sockstat6"};

/* Of a sockstat table only "inuse N" and "tw N" are of this namespace alone; the rest counts for
 * the whole machine, or counts unix sockets that the server may not have closed yet. In place. */
static size_t keep_inuse(char *text) {
    static const char *const words[] = {"inuse ", "tw "};
    char *to = text;
    for (char *line = text, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        next += *next == '\n';
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            char *at = strstr(line, words[i]);
            if (!at || at >= next)
                continue;
            size_t n = strlen(words[i]);
            n += strspn(at + n, "0123456789");
            memmove(to, at, n);
            to += n;
        }
    }
    *to = '\0';
    return (size_t)(to - text);
}

static int read_tables(char *out, struct err *e) {
    size_t len = 0;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        char path[64] = "/proc/self/net/";
        strncat(path, tables[i], sizeof path - strlen(path) - 1);
        AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
        size_t n;
        if (fd < 0)
            continue; /* no IPv6 */
        if (fd_read_all(fd, out + len, TEXT_MAX - len, &n, e) < 0)
            return err_wrap(e, "%s", path);
        len += strncmp(tables[i], "sock", 4) == 0 ? keep_inuse(out + len) : n;
    }
    return 0;
}

static int loopback_up(struct err *e) {
    AUTO_FD s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = {.ifr_name = "lo"};
    if (s < 0 || ioctl(s, SIOCGIFFLAGS, &r) < 0)
        return err_sys(e, "read the flags of lo");
    r.ifr_flags |= IFF_UP;
    return ioctl(s, SIOCSIFFLAGS, &r) < 0 ? err_sys(e, "bring lo up") : 0;
}

static int make(struct netpool *p, int *ret_fd, struct err *e) {
    if (unshare(CLONE_NEWNET) < 0)
        return err_sys(e, "make a network namespace");
    if (loopback_up(e) < 0)
        return -1;
    *ret_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (*ret_fd < 0)
        return err_sys(e, "open /proc/self/ns/net");
    p->made++;
    return 0;
}

int netpool_init(struct netpool *p, struct err *e) {
    *p = (struct netpool){.fresh = xmalloc(TEXT_MAX), .now = xmalloc(TEXT_MAX)};
    if (make(p, &p->spare[0], e) < 0)
        return -1;
    p->nspare = 1;
    return read_tables(p->fresh, e);
}

void netpool_done(struct netpool *p) {
    fd_close_all(p->spare, p->nspare);
    free(p->fresh);
    free(p->now);
    *p = (struct netpool){0};
}

int netpool_enter(struct netpool *p, int *ret_fd, struct err *e) {
    if (!p->nspare)
        return make(p, ret_fd, e);
    int fd = p->spare[--p->nspare];
    if (setns(fd, CLONE_NEWNET) < 0) {
        fd_close(&fd);
        return err_sys(e, "enter a network namespace");
    }
    p->reused++;
    *ret_fd = fd;
    return 0;
}

void netpool_give_back(struct netpool *p, int *fd) {
    struct err e;
    if (*fd < 0)
        return;
    bool clean = p->nspare < NETPOOL_MAX && setns(*fd, CLONE_NEWNET) == 0 &&
                 read_tables(p->now, &e) == 0 && strcmp(p->now, p->fresh) == 0;
    if (clean) {
        p->spare[p->nspare++] = fd_take(fd);
    } else {
        p->dropped++;
        fd_close(fd);
    }
}
