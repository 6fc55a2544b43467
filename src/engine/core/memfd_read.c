/* See memfd_read.h. */

#include "engine/core/memfd_read.h"

#include <linux/magic.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

int memfd_read(int fd, size_t max, struct buf *ret) {
    struct stat st;
    struct statfs fs;
    /* SECURITY: a file of memory only: of another kind it might block. It may change as it is read:
     * what counts is our copy. (Where init watches memory, a kernel's memfd is a file on its tmpfs
     * and cannot be sealed, so seals are not asked for.) */
    if (fd < 0 || fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC ||
        !S_ISREG(st.st_mode) || st.st_size <= 0 || (uint64_t)st.st_size > max)
        return -1;
    char *to = buf_reserve(ret, (size_t)st.st_size);
    ssize_t n = pread(fd, to, (size_t)st.st_size, 0);
    if (n != st.st_size)
        return -1;
    buf_commit(ret, (size_t)n);
    return 0;
}
