/* See filter.h. A list of what is allowed, since the gate is a small program of known needs: bytes
 * and descriptors over what it has, new sockets of the internet families, memory without code, the
 * clock. No file is opened, nothing is executed, nobody is signalled, no socket listens: what a
 * resolver's answer or an init could make of a fault in here is more of the same. The netlink
 * socket that tells the host's addresses is opened before.
 *
 * Everything else gets EPERM, so that a libc that tries something new goes on without. Programs of
 * sanitizers and for coverage have no filter: their runtimes open files. */

#include "gate/filter.h"

#include "sandbox/allow_list.h"
#include "sandbox/caps.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define SOCK_KIND 0xf
#define SOCKET(family, kind, protocol)                                                             \
    {                                                                                              \
        SYS_socket, {                                                                              \
            ALLOW_INT(0, family), ALLOW_BITS(1, SOCK_KIND, kind), ALLOW_INT(2, protocol)           \
        }                                                                                          \
    }
#define SOCKETS(family)                                                                            \
    SOCKET(family, SOCK_STREAM, 0), SOCKET(family, SOCK_STREAM, IPPROTO_TCP),                      \
        SOCKET(family, SOCK_DGRAM, 0), SOCKET(family, SOCK_DGRAM, IPPROTO_UDP)
#define FCNTL(command)                                                                             \
    {                                                                                              \
        SYS_fcntl, {                                                                               \
            ALLOW_INT(1, command)                                                                  \
        }                                                                                          \
    }

static const struct allowed_call calls[] = {
    {SYS_epoll_pwait},
#if defined __x86_64__
    {SYS_epoll_wait},
    {SYS_poll},
#endif
    {SYS_recvmsg},
    {SYS_sendmsg},
    {SYS_epoll_ctl},
    {SYS_close},
    SOCKETS(AF_INET),
    SOCKETS(AF_INET6),
    {SYS_connect}, /* of what socket() gave */
    {SYS_getsockopt},
    {SYS_setsockopt},
    {SYS_getsockname},
    {SYS_getpeername},
    {SYS_recvfrom},
    {SYS_sendto, {ALLOW_NULL(4)}}, /* to where connect() went */
    /* Channels for inits: connected for good, where a pair of datagram sockets could be connected
     * to others. */
    {SYS_socketpair, {ALLOW_INT(0, AF_UNIX), ALLOW_BITS(1, SOCK_KIND, SOCK_SEQPACKET)}},
    {SYS_read},
    {SYS_write},
    {SYS_writev},
    {SYS_pwritev2}, /* the log */
    {SYS_pread64},
    {SYS_clock_gettime},
    {SYS_gettimeofday},
    {SYS_ppoll},
    {SYS_shutdown},
    {SYS_mmap, {ALLOW_BITS(2, PROT_EXEC, 0)}},
    {SYS_mprotect, {ALLOW_BITS(2, PROT_EXEC, 0)}},
    {SYS_munmap},
    {SYS_mremap},
    {SYS_madvise},
    {SYS_brk},
    {SYS_futex},
    {SYS_getrandom},
    {SYS_fstat},
    {SYS_newfstatat, {ALLOW_INT(3, AT_EMPTY_PATH)}}, /* what libc makes of fstat */
    {SYS_lseek},
    {SYS_getpid},
    FCNTL(F_DUPFD_CLOEXEC),
    FCNTL(F_GETFL),
    FCNTL(F_SETFL),
    FCNTL(F_GETFD),
    FCNTL(F_SETFD),
    {SYS_ioctl, {ALLOW_INT(1, FIONREAD)}},
    {SYS_ioctl, {ALLOW_INT(1, FIONBIO)}},
    {SYS_rt_sigprocmask},
    {SYS_rt_sigreturn},
    {SYS_restart_syscall},
    {SYS_exit},
    {SYS_exit_group},
};

bool filter_is_off(void) {
#if defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
    return true;
#endif
#endif
#if defined __SANITIZE_ADDRESS__ || defined CLOCHE_COVERAGE
    return true;
#else
    return false;
#endif
}

int filter_enter(struct err *e) {
    if (caps_drop_held(e) < 0)
        return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_sys(e, "prctl");
    if (filter_is_off())
        return 0;
    return allow_list_enter(calls, sizeof calls / sizeof calls[0], ALLOW_ELSE_EPERM, e);
}
