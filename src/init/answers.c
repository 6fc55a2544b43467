/* See answers.h.
 *
 * sysinfo() tells the same as the /proc/meminfo, loadavg and uptime of a sandbox (sandbox/proc.c).
 * libc sizes sorts and getloadavg() by it, Java its heap, so an errno would not do.
 *
 * memfd_create(): such a file is in no file system. Where control groups count its pages, the
 * caller makes it itself. Where init has to watch, a program could hide it in a message between its
 * own sockets, where no table of descriptors shows it. There the caller gets a file without a name
 * on the sandbox's tmpfs instead, whose quota holds wherever the file is. It cannot be sealed. */

#include "init/answers.h"

#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
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

/* The one interface, at its address or with its mask. */
static struct ifreq interface(uint32_t address) {
    struct ifreq r = {.ifr_name = "lo"};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    memcpy(&r.ifr_addr, &in, sizeof in);
    return r;
}

/* 0 or an errno. */
static int list_interfaces(const struct caller *c) {
    struct ifconf all;
    struct ifreq one = interface(INADDR_LOOPBACK);
    if (!caller_read(c, c->args[2], &all, sizeof all))
        return EFAULT;
    if (all.ifc_buf && all.ifc_len < (int)sizeof one)
        all.ifc_len = 0;
    else if (all.ifc_buf && !caller_write(c, (uintptr_t)all.ifc_buf, &one, sizeof one))
        return EFAULT;
    else
        all.ifc_len = sizeof one;
    return caller_write(c, c->args[2], &all, sizeof all) ? 0 : EFAULT;
}

static int tell_interface(const struct caller *c) {
    struct ifreq asked, one;
    bool is_mask = (uint32_t)c->args[1] == SIOCGIFNETMASK;
    if (!caller_read(c, c->args[2], &asked, sizeof asked))
        return EFAULT;
    if (strncmp(asked.ifr_name, "lo", sizeof asked.ifr_name) != 0)
        return ENODEV;
    one = interface(is_mask ? IN_CLASSA_NET : INADDR_LOOPBACK);
    return caller_write(c, c->args[2], &one, sizeof one) ? 0 : EFAULT;
}

void answers_interface(struct caller *c) {
    int family;
    socklen_t len = sizeof family;
    AUTO_FD fd = caller_descriptor(c);
    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len) < 0)
        caller_answer(c, fd < 0 ? EBADF : ENOTTY);
    else
        caller_answer(c,
                      (uint32_t)c->args[1] == SIOCGIFCONF ? list_interfaces(c) : tell_interface(c));
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
