/* gate/filter: what the gate can do, and what it cannot. Each in a child that has entered it. */

#include "gate/filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The errno of one call under the filter; 0: it went well. */
static int under_filter(int (*call)(void)) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        struct err e;
        if (filter_enter(&e) < 0)
            _exit(200);
        errno = 0;
        _exit(call() < 0 ? errno : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int tcp(void) {
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}
static int udp(void) {
    return socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}
static int channel(void) {
    int pair[2];
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}
static int memory(void) {
    void *p = malloc(8 << 20);
    free(p);
    return p ? 0 : -1;
}
static int size(void) {
    struct stat st;
    return fstat(STDERR_FILENO, &st);
}
static int duplicate(void) {
    return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
}
static int loop(void) {
    struct epoll_event event;
    return epoll_wait(STDERR_FILENO, &event, 1, 0) < 0 && errno != EPERM ? 0 : -1;
}

static int file(void) {
    return open("/dev/null", O_RDONLY);
}
static int unix_socket(void) {
    return socket(AF_UNIX, SOCK_STREAM, 0);
}
static int unix_datagrams(void) { /* could be connected to others */
    int pair[2];
    return socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
}
static int netlink(void) {
    return socket(AF_NETLINK, SOCK_RAW, 0);
}
static int packets(void) {
    return socket(AF_PACKET, SOCK_RAW, 0);
}
static int raw(void) {
    return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}
static int ping(void) {
    return socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
}
static int server(void) {
    return listen(tcp(), 1);
}
static int address(void) {
    struct sockaddr_in a = {.sin_family = AF_INET};
    return bind(tcp(), (struct sockaddr *)&a, sizeof a);
}
static int datagram(void) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = 9};
    return (int)sendto(udp(), "", 0, 0, (struct sockaddr *)&a, sizeof a);
}
static int child(void) {
    return (int)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}
static int program(void) {
    char *const words[] = {(char *)"true", NULL};
    return execv("/bin/true", words);
}
static int signal_to(void) {
    return kill(getppid(), 0);
}
static int code(void) {
    void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? -1 : 0;
}
static int code_later(void) {
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mprotect(p, 4096, PROT_READ | PROT_EXEC);
}
static int terminal(void) {
    char c = 0;
    return ioctl(STDERR_FILENO, TIOCSTI, &c);
}
static int namespaces(void) {
    return unshare(CLONE_NEWUSER);
}
static int trace(void) {
    return (int)syscall(SYS_ptrace, 0, 0, 0, 0);
}

static void it_can_do_its_work(void **state) {
    (void)state;
    int (*const calls[])(void) = {tcp, udp, channel, memory, size, duplicate, loop};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (under_filter(calls[i]) != 0)
            fail_msg("call %zu is refused", i);
}

static void it_can_do_nothing_else(void **state) {
    (void)state;
    int (*const calls[])(void) = {file,     unix_socket, unix_datagrams, netlink, packets,
                                  raw,      ping,        server,         address, datagram,
                                  child,    program,     signal_to,      code,    code_later,
                                  terminal, namespaces,  trace};
    if (filter_is_off())
        skip();
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (under_filter(calls[i]) != EPERM)
            fail_msg("call %zu is allowed", i);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_can_do_its_work),
        cmocka_unit_test(it_can_do_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
