/* See caller.h. */

#include "init/caller.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef SECCOMP_ADDFD_FLAG_SEND
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1) /* kernel 5.14 */
#endif

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL /* kernel 6.9 */
#endif

#define STATUS_MAX 4096

bool caller_waits(const struct caller *c) {
    return ioctl(c->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &c->id) == 0;
}

static bool read_status(pid_t pid, char text[STATUS_MAX]) {
    char path[32];
    struct err e;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    return file_read_at(AT_FDCWD, path, text, STATUS_MAX, &e) == 0;
}

static uint64_t status_field(const char *text, const char *key, int base) {
    const char *at = strstr(text, key);
    return at ? strtoull(at + strlen(key), NULL, base) : 0;
}

/* A pidfd stands for a whole process, and mostly its first thread is the one that calls. Once that
 * thread has ended, the descriptors can only be had through another one. */
static int open_process(struct caller *c) {
    char text[STATUS_MAX];
    c->process = c->thread;
    int fd = (int)syscall(SYS_pidfd_open, c->process, 0);
    if (fd >= 0 || !read_status(c->thread, text))
        return fd;
    c->process = (pid_t)status_field(text, "\nTgid:", 10);
    fd = (int)syscall(SYS_pidfd_open, c->thread, PIDFD_THREAD);
    return fd >= 0 ? fd : (int)syscall(SYS_pidfd_open, c->process, 0);
}

int caller_descriptor(struct caller *c) {
    AUTO_FD process = open_process(c);
    AUTO_FD fd = -1;
    if (process >= 0)
        fd = (int)syscall(SYS_pidfd_getfd, process, (int)c->args[0], 0);
    if (fd >= 0 && caller_waits(c))
        return fd_take(&fd);
    errno = EBADF;
    return -1;
}

bool caller_read(const struct caller *c, uint64_t at, void *to, size_t len) {
    struct iovec here = {to, len}, there = {(void *)(uintptr_t)at, len};
    return process_vm_readv(c->thread, &here, 1, &there, 1, 0) == (ssize_t)len && caller_waits(c);
}

bool caller_write(const struct caller *c, uint64_t at, const void *from, size_t len) {
    struct iovec here = {(void *)(uintptr_t)from, len}, there = {(void *)(uintptr_t)at, len};
    return caller_waits(c) && process_vm_writev(c->thread, &here, 1, &there, 1, 0) == (ssize_t)len;
}

bool caller_signalled(const struct caller *c) {
    char text[STATUS_MAX];
    if (!read_status(c->thread, text))
        return false;
    uint64_t pending = status_field(text, "\nSigPnd:", 16) | status_field(text, "\nShdPnd:", 16);
    return pending & status_field(text, "\nSigCgt:", 16) & ~status_field(text, "\nSigBlk:", 16);
}

static void send_answer(const struct caller *c, int errnum, int value) {
    struct seccomp_notif_resp resp = {.id = c->id, .error = -errnum, .val = value};
    ioctl(c->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

void caller_answer(const struct caller *c, int errnum) {
    send_answer(c, errnum, 0);
}

void caller_go_on(const struct caller *c) {
    struct seccomp_notif_resp resp = {.id = c->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    ioctl(c->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

void caller_give(const struct caller *c, int fd, bool cloexec) {
    struct seccomp_notif_addfd add = {.id = c->id,
                                      .flags = SECCOMP_ADDFD_FLAG_SEND,
                                      .srcfd = (uint32_t)fd,
                                      .newfd_flags = cloexec ? O_CLOEXEC : 0};
    if (ioctl(c->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add) >= 0)
        return;
    if (errno != EINVAL) {
        send_answer(c, errno, 0);
        return;
    }
    add.flags = 0;
    int there = ioctl(c->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
    send_answer(c, there < 0 ? errno : 0, there < 0 ? 0 : there);
}
