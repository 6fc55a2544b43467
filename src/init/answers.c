/* See answers.h.
 *
 * sysinfo() is /proc/meminfo, loadavg and uptime in one: what those say (sandbox/proc.c), this one
 * says. libc sizes sorts and getloadavg() by it, Java its heap, so an errno would not do.
 *
 * memfd_create(): such a file is in no file system. Where control groups count its pages it is the
 * kernel's; where init has to watch, a program could hide it in messages between its sockets, in
 * nobody's table of descriptors. There it is a file without a name on the sandbox's tmpfs, whose
 * quota holds wherever the file is. It cannot be sealed. */

#include "init/answers.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#define MFD_KNOWN (MFD_CLOEXEC | MFD_ALLOW_SEALING | 8u /* NOEXEC_SEAL */ | 16u /* EXEC */)

void answers_sysinfo(struct caller *c, uint32_t memory_mb) {
    struct timespec up;
    struct sysinfo told = {.mem_unit = 1, .procs = 1};
    clock_gettime(CLOCK_BOOTTIME, &up);
    told.uptime = up.tv_sec;
    told.totalram = told.freeram = (unsigned long)memory_mb << 20;
    caller_answer(c, caller_write(c, c->args[0], &told, sizeof told) ? 0 : EFAULT);
}

void answers_memfd(const struct caller *c, uint32_t uid) {
    uint32_t flags = (uint32_t)c->args[1];
    if (flags & ~MFD_KNOWN) {
        caller_answer(c, EINVAL);
        return;
    }
    AUTO_FD file = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0700);
    if (file < 0 || fchown(file, uid, uid) < 0)
        caller_answer(c, ENOMEM);
    else
        caller_give(c, file, flags & MFD_CLOEXEC);
}
