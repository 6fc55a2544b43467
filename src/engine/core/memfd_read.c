/* See memfd_read.h. */

#include "engine/core/memfd_read.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

int memfd_read(int fd, size_t max, struct buf *ret) {
    struct stat st;
    /* SECURITY: a memfd only, sealed: a file of another kind might block, or change. */
    int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_WRITE) || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) < 0 ||
        !S_ISREG(st.st_mode) || st.st_size <= 0 || (uint64_t)st.st_size > max)
        return -1;
    char *to = buf_reserve(ret, (size_t)st.st_size);
    ssize_t n = pread(fd, to, (size_t)st.st_size, 0);
    if (n != st.st_size)
        return -1;
    buf_commit(ret, (size_t)n);
    return 0;
}
