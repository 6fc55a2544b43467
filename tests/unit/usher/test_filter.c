/* usher/filter: what a process that holds sockets of both sides can still do, call by call. */

#include "usher/filter.h"
#include "usher/usher.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define AFAR (FILTER_NAMES + USHER_NAMES) /* the first descriptor that is a relay's */

static struct sockaddr_in somewhere = {.sin_family = AF_INET};
static char byte = 'x';
static struct iovec piece = {&byte, 1};
static struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
static struct linger lingers;
static int number = 1;

/* Descriptors from 3 on are ends of socket pairs. */
#define CALLS(X)                                                                                   \
    X(socket(AF_INET, SOCK_STREAM, 0), false)                                                      \
    X(socket(AF_UNIX, SOCK_STREAM, 0), false)                                                      \
    X(connect(AFAR, (struct sockaddr *)&somewhere, sizeof somewhere), false)                       \
    X(bind(AFAR, (struct sockaddr *)&somewhere, sizeof somewhere), false)                          \
    X(listen(AFAR, 1), false)                                                                      \
    X(sendto(AFAR, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0), true)                          \
    X(sendto(AFAR, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&somewhere, 16),      \
      false)                                                                                       \
    X(sendto(AFAR, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_FASTOPEN, NULL, 0), false)          \
    X(sendto(AFAR, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL, (void *)(uintptr_t)(1ull << 40), 0),     \
      false)                                                                                       \
    X(sendto(AFAR, &byte, 1, MSG_OOB, NULL, 0), false)                                             \
    X(sendmsg(FILTER_CHANNEL, &message, MSG_NOSIGNAL), true)                                       \
    X(sendmsg(FILTER_NAMES, &message, MSG_DONTWAIT | MSG_NOSIGNAL), true)                          \
    X(sendmsg(FILTER_NAMES, &message, MSG_NOSIGNAL | MSG_FASTOPEN), false)                         \
    X(sendmsg(AFAR, &message, MSG_NOSIGNAL), false)                                                \
    X(syscall(SYS_sendmsg, -1, &message, MSG_NOSIGNAL), false)                                     \
    X(write(AFAR, &byte, 1), false)                                                                \
    X(recv(AFAR, &byte, 1, MSG_DONTWAIT), true)                                                    \
    X(setsockopt(AFAR, SOL_SOCKET, SO_LINGER, &lingers, sizeof lingers), true)                     \
    X(setsockopt(AFAR, SOL_SOCKET, SO_RCVLOWAT, &number, sizeof number), true)                     \
    X(setsockopt(AFAR, IPPROTO_TCP, TCP_NODELAY, &number, sizeof number), true)                    \
    X(setsockopt(AFAR, SOL_SOCKET, SO_BINDTODEVICE, "lo", 2), false)                               \
    X(setsockopt(AFAR, SOL_SOCKET, SO_RCVBUF, &number, sizeof number), false)                      \
    X(setsockopt(AFAR, IPPROTO_IP, IP_FREEBIND, &number, sizeof number), false)                    \
    X(setsockopt(AFAR, IPPROTO_TCP, TCP_REPAIR, &number, sizeof number), false)                    \
    X(setsockopt(AFAR, IPPROTO_IP, SO_LINGER, &number, sizeof number), false)                      \
    X(getsockopt(AFAR, IPPROTO_TCP, TCP_INFO, NULL, NULL), true)                                   \
    X(getsockopt(AFAR, IPPROTO_TCP, TCP_CC_INFO, NULL, NULL), false)                               \
    X(getsockopt(AFAR, SOL_SOCKET, SO_PEERCRED, NULL, NULL), false)                                \
    X(getpeername(AFAR, NULL, NULL), false)                                                        \
    X(accept4(AFAR, NULL, NULL, SOCK_CLOEXEC), true)                                               \
    X(shutdown(AFAR, SHUT_WR), true)                                                               \
    X(close(AFAR), true)                                                                           \
    X(dup(AFAR), false)                                                                            \
    X(fcntl(AFAR, F_DUPFD, 0), false)                                                              \
    X(open("/proc/self/mem", O_RDWR), false)                                                       \
    X(kill(getppid(), 0), false)                                                                   \
    X(fork(), false)                                                                               \
    X(execl("/bin/true", "true", (char *)NULL), false)                                             \
    X(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED, true)         \
    X(mmap(NULL, 4096, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED, false)        \
    X(mprotect(&byte, 1, PROT_EXEC), false)                                                        \
    X(syscall(SYS_pidfd_getfd, AFAR, 0, 0), false)                                                 \
    X(syscall(SYS_io_uring_setup, 1, NULL), false)                                                 \
    X(epoll_ctl(AFAR, EPOLL_CTL_DEL, AFAR, NULL), true)

static const char *const words[] = {
#define X(call, may) #call,
    CALLS(X)
#undef X
};
static const bool allowed[] = {
#define X(call, may) may,
    CALLS(X)
#undef X
};

static void make(unsigned which) {
    unsigned i = 0;
#define X(call, may)                                                                               \
    if (i++ == which)                                                                              \
        (void)!(call);
    CALLS(X)
#undef X
}

static _Noreturn void child(unsigned which) {
    struct err e;
    int pair[2];
    close_range(3, ~0u, 0);
    for (int i = 0; i < 6; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0)
            _exit(2);
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || filter_enter(&e) < 0)
        _exit(3);
    make(which);
    _exit(0);
}

static void each_call_is_allowed_or_the_end(void **state) {
    (void)state;
    bool good = true;
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0)
            child(i);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
        bool went = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (allowed[i] ? !went : !killed) {
            print_error("%s: status %#x, %s wanted\n", words[i], (unsigned)status,
                        allowed[i] ? "allowed" : "killed");
            good = false;
        }
    }
    assert_true(good);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_is_allowed_or_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
