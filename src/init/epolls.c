/* See epolls.h. Theory of operation. A file that wakes those who wait for it does so one after the
 * other, some 100 ns each, and a timer's file does it in the interrupt: nobody is charged, and no
 * other process runs there meanwhile (seen: 864,000 watches on one timer, 0.1 s at each tick). One
 * epoll descriptor can watch a file as often as its owner has numbers for it, which open_files
 * bounds; so the number of those descriptors is bounded here. Init makes them, and counts those
 * that somebody still has by watching them itself.
 *
 * The kernel counts watches for the user who made the descriptor, so that is the sandbox's: init
 * changes its real uid for a moment. Only signals look at that, and PID 1 takes none from inside.
 */

#include "init/epolls.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EPOLLS_MAX 64

unsigned epolls_watched(int epoll) {
    char path[48], text[8192];
    struct err e;
    unsigned n = 0;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", epoll);
    if (file_read_at(AT_FDCWD, path, text, sizeof text, &e) < 0)
        return UINT32_MAX;
    for (const char *at = text; (at = strstr(at, "\ntfd:")); at++)
        n++;
    return n;
}

static int make_one(struct epolls *l, uint32_t uid, int *ret_fd) {
    struct epoll_event none = {.events = 0};
    if (!l->made && (l->all = epoll_create1(EPOLL_CLOEXEC)) < 0)
        return errno;
    l->made = true;
    if (epolls_watched(l->all) >= EPOLLS_MAX)
        return EMFILE;
    if (setresuid(uid, (uid_t)-1, (uid_t)-1) < 0)
        return errno;
    AUTO_FD fd = epoll_create1(EPOLL_CLOEXEC);
    int wrong = fd < 0 ? errno : 0;
    if (setresuid(0, (uid_t)-1, (uid_t)-1) < 0)
        _exit(1);
    if (wrong == 0 && epoll_ctl(l->all, EPOLL_CTL_ADD, fd, &none) < 0)
        wrong = errno;
    if (wrong == 0)
        *ret_fd = fd_take(&fd);
    return wrong;
}

/* epoll_create() has a size, which must be positive and means nothing else. */
void epolls_make(struct epolls *l, const struct caller *c, uint32_t uid) {
    AUTO_FD fd = -1;
    bool has_flags = c->nr == SYS_epoll_create1;
    uint32_t arg = (uint32_t)c->args[0];
    int wrong = has_flags ? arg & ~(uint32_t)EPOLL_CLOEXEC : (int32_t)arg <= 0;
    if (wrong)
        caller_answer(c, EINVAL);
    else if ((wrong = make_one(l, uid, &fd)))
        caller_answer(c, wrong);
    else
        caller_give(c, fd, has_flags && arg & EPOLL_CLOEXEC);
}
