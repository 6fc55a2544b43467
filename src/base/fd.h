#pragma once
/* File descriptors: owners that close themselves, and small whole-file helpers.
 * `int fd` borrows, `int *fd` in a _take function consumes. Everything is CLOEXEC at birth. */

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define AUTO_FD   __attribute__((cleanup(fd_close))) int
#define AUTO_FREE __attribute__((cleanup(ptr_free)))

/* Closes *fd unless it is negative, and sets it to -1. errno is kept. */
void fd_close(int *fd);
void fd_close_all(int *fds, size_t n);
static inline int fd_take(int *fd) {
    int v = *fd;
    *fd = -1;
    return v;
}
void ptr_free(void *pointer_to_pointer);

int fd_set_nonblock(int fd, struct err *e);
int fd_set_cloexec(int fd, int on, struct err *e);

/* All of buf, over short writes and EINTR; blocks. */
int fd_write_all(int fd, const void *buf, size_t len, struct err *e);
/* Up to cap - 1 bytes until end of file, NUL-terminated; *ret_len may be NULL. Too much is EFBIG.
 */
int fd_read_all(int fd, char *buf, size_t cap, size_t *ret_len, struct err *e);

int file_write_at(int dirfd, const char *name, const char *text, struct err *e);
int file_read_at(int dirfd, const char *name, char *buf, size_t cap, struct err *e);

/* A memfd that holds the given bytes; positioned behind them. */
int memfd_open(const char *name, const void *data, size_t len, int *ret_fd, struct err *e);
/* A sealed memfd that holds the given bytes; positioned at 0. */
int memfd_of(const char *name, const void *data, size_t len, int *ret_fd, struct err *e);
/* One that was written: it changes no more, and is read from its beginning. */
int memfd_seal(int fd, struct err *e);

/* For st_ctim: later than every change of a file before, not later than any after. Kernels before
 * 6.13 stamp by the tick; there changes of the last few milliseconds count as after. */
uint64_t file_stamp_ns(void);
