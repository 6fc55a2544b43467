/* See filter.h. SECURITY: the usher is the one process that has sockets of the host's network
 * namespace and reads what a sandbox sends. So there is no socket(), no connect() and no bind(),
 * nothing that is sent has an address, none that begins a connection (MSG_FASTOPEN), and messages
 * with descriptors or control data go to init and to programs that asked for a name, by number. */

#include "usher/filter.h"

#include "sandbox/allow_list.h"
#include "usher/usher.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined __has_feature
#if __has_feature(address_sanitizer)
#define SANITIZED /* it looks at the stack before each function that does not return */
#endif
#elif defined __SANITIZE_ADDRESS__
#define SANITIZED
#endif

_Static_assert(FILTER_NAMES == FILTER_CHANNEL + 1 && USHER_NAMES == 4, "as in MESSAGES");
#define MESSAGE(fd, flags)                                                                         \
    {                                                                                              \
        SYS_sendmsg, {                                                                             \
            ALLOW_INT(0, fd), ALLOW_INT(2, flags)                                                  \
        }                                                                                          \
    }
#define MESSAGES(fd) MESSAGE(fd, MSG_NOSIGNAL), MESSAGE(fd, MSG_DONTWAIT | MSG_NOSIGNAL)
#define OPTION(call, level, name)                                                                  \
    {                                                                                              \
        SYS_##call, {                                                                              \
            ALLOW_INT(1, level), ALLOW_INT(2, name)                                                \
        }                                                                                          \
    }

static const struct allowed_call calls[] = {
#if defined SANITIZED
    {SYS_sigaltstack},
#endif
    {SYS_recvfrom},
    {SYS_sendto, {ALLOW_INT(3, MSG_DONTWAIT | MSG_NOSIGNAL), ALLOW_NULL(4)}},
    {SYS_recvmsg},
    MESSAGES(FILTER_CHANNEL),
    MESSAGES(FILTER_NAMES + USHER_UDP4),
    MESSAGES(FILTER_NAMES + USHER_UDP6),
    MESSAGES(FILTER_NAMES + USHER_TCP4),
    MESSAGES(FILTER_NAMES + USHER_TCP6),
    {SYS_epoll_pwait},
#if defined __x86_64__
    {SYS_epoll_wait},
#endif
    {SYS_epoll_ctl},
    {SYS_accept4},
    OPTION(setsockopt, IPPROTO_TCP, TCP_NODELAY),
    OPTION(setsockopt, SOL_SOCKET, SO_RCVLOWAT),
    OPTION(setsockopt, SOL_SOCKET, SO_LINGER),
    OPTION(getsockopt, IPPROTO_TCP, TCP_INFO),
    {SYS_shutdown},
    {SYS_close},
    {SYS_clock_gettime},
    {SYS_brk},
    {SYS_mmap, {ALLOW_BITS(2, PROT_EXEC, 0), ALLOW_BITS(3, MAP_ANONYMOUS, MAP_ANONYMOUS)}},
    {SYS_munmap},
    {SYS_mremap},
    {SYS_madvise},
    {SYS_rt_sigreturn},
    {SYS_restart_syscall},
    {SYS_exit_group},
};

int filter_enter(struct err *e) {
    return allow_list_enter(calls, sizeof calls / sizeof calls[0], ALLOW_ELSE_KILL, e);
}
