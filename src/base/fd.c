/* See fd.h. Async-signal-safe throughout (but for ptr_free), so that it serves between fork and
 * exec. */

#include "base/fd.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOUCHES 4 /* two, unless others touch files at the same time */

void fd_close(int *fd) {
    if (*fd < 0)
        return;
    int saved = errno;
    close(*fd);
    *fd = -1;
    errno = saved;
}

void fd_close_all(int *fds, size_t n) {
    for (size_t i = 0; i < n; i++)
        fd_close(&fds[i]);
}

void ptr_free(void *pointer_to_pointer) {
    void **p = pointer_to_pointer;
    free(*p);
    *p = NULL;
}

int fd_set_nonblock(int fd, struct err *e) {
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return err_sys(e, "set O_NONBLOCK");
    return 0;
}

int fd_set_cloexec(int fd, int on, struct err *e) {
    if (fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0)
        return err_sys(e, "set FD_CLOEXEC");
    return 0;
}

int fd_write_all(int fd, const void *buf, size_t len, struct err *e) {
    const char *p = buf;
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "write");
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

int fd_read_all(int fd, char *buf, size_t cap, size_t *ret_len, struct err *e) {
    size_t len = 0;
    for (;;) {
        ssize_t n = read(fd, buf + len, cap - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "read");
        if (n == 0)
            break;
        len += (size_t)n;
        if (len == cap)
            return err_set(e, EFBIG, "read: more than %zu bytes", cap - 1);
    }
    buf[len] = '\0';
    if (ret_len)
        *ret_len = len;
    return 0;
}

int file_write_at(int dirfd, const char *name, const char *text, struct err *e) {
    AUTO_FD fd = openat(dirfd, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return err_sys(e, "open %s", name);
    size_t len = strlen(text);
    ssize_t n = write(fd, text, len);
    if (n < 0)
        return err_sys(e, "write %s", name);
    return (size_t)n == len ? 0 : err_set(e, EIO, "write %s: short write", name);
}

int file_read_at(int dirfd, const char *name, char *buf, size_t cap, struct err *e) {
    AUTO_FD fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "open %s", name);
    if (fd_read_all(fd, buf, cap, NULL, e) < 0)
        return err_wrap(e, "%s", name);
    return 0;
}

int memfd_seal(int fd, struct err *e) {
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return err_sys(e, "seal memfd");
    return lseek(fd, 0, SEEK_SET) < 0 ? err_sys(e, "rewind memfd") : 0;
}

int memfd_open(const char *name, const void *data, size_t len, int *ret_fd, struct err *e) {
    AUTO_FD fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return err_sys(e, "memfd_create");
    if (fd_write_all(fd, data, len, e) < 0)
        return err_wrap(e, "memfd %s", name);
    *ret_fd = fd_take(&fd);
    return 0;
}

int memfd_of(const char *name, const void *data, size_t len, int *ret_fd, struct err *e) {
    AUTO_FD fd = -1;
    if (memfd_open(name, data, len, &fd, e) < 0 || memfd_seal(fd, e) < 0)
        return -1;
    *ret_fd = fd_take(&fd);
    return 0;
}

/* The kernel looks at its exact clock only for a file whose last stamp was seen and would not
 * change otherwise; from then on nothing is stamped with less. */
uint64_t file_stamp_ns(void) {
    AUTO_FD fd = memfd_create("stamp", MFD_CLOEXEC);
    uint64_t coarse = clock_ns(CLOCK_REALTIME_COARSE), real = clock_ns(CLOCK_REALTIME);
    for (int tries = 0; fd >= 0 && tries < TOUCHES; tries++) {
        struct stat st;
        if (futimens(fd, NULL) < 0 || fstat(fd, &st) < 0)
            break;
        if ((uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec >= real)
            return real;
    }
    return coarse;
}
