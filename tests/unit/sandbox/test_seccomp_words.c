/* What a refused call is answered with, and in which words; and which calls init makes instead. */

#include "seccomp_fixture.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cmocka.h>

static const struct words_case {
    int nr;
    uint64_t args[6];
    int errnum;
    const char *op, *detail, *rule;
} words_cases[] = {
    {SYS_ptrace,
     {PTRACE_ATTACH},
     EPERM,
     "attach to another process",
     "ptrace(PTRACE_ATTACH) is not available inside a sandbox",
     "seccomp:ptrace"},
    {SYS_ptrace,
     {PTRACE_CONT},
     EPERM,
     "debug a process",
     "ptrace() is not available inside a sandbox",
     "seccomp:ptrace"},
    {SYS_mount,
     {0},
     EPERM,
     "mount a file system",
     "mount() is not available inside a sandbox",
     "seccomp:mount"},
    {SYS_clone,
     {CLONE_NEWUSER | SIGCHLD},
     EPERM,
     "make a new user namespace",
     "clone(CLONE_NEWUSER) is not available inside a sandbox",
     "seccomp:clone"},
    {SYS_socket,
     {HIGH | AF_PACKET, SOCK_RAW},
     EAFNOSUPPORT,
     "open a packet capture socket",
     "socket(AF_PACKET) is not available inside a sandbox",
     "seccomp:socket"},
    {SYS_socket,
     {AF_INET, SOCK_RAW | SOCK_CLOEXEC},
     EPERM,
     "open a raw socket",
     "socket(AF_INET, SOCK_RAW) is not available inside a sandbox",
     "seccomp:socket"},
    {SYS_socket,
     {AF_INET, SOCK_SEQPACKET},
     ESOCKTNOSUPPORT,
     "open a socket of an unusual type",
     "socket() of a type other than SOCK_STREAM and SOCK_DGRAM is not available inside a sandbox",
     "seccomp:socket"},
    {SYS_socket,
     {77},
     EAFNOSUPPORT,
     "open a socket of an unusual family",
     "socket() of this address family is not available inside a sandbox",
     "seccomp:socket"},
    {SYS_read,
     {0},
     EPERM,
     "make a system call",
     "this system call is not available inside a sandbox",
     "seccomp"},
    {-1,
     {0},
     EPERM,
     "make a system call",
     "this system call is not available inside a sandbox",
     "seccomp"},
};

static void test_words(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof words_cases / sizeof words_cases[0]; i++) {
        const struct words_case *c = &words_cases[i];
        struct seccomp_refusal scratch;
        const struct seccomp_refusal *r = seccomp_refusal(c->nr, c->args, &scratch);
        assert_int_equal(r->errnum, c->errnum);
        assert_string_equal(r->op, c->op);
        assert_string_equal(r->detail, c->detail);
        assert_string_equal(r->rule, c->rule);
    }
}

/* Whatever the filter notifies has words of its own: the default is for nobody. */
static void test_every_notified_call_has_words(void **state) {
    (void)state;
    for (int nr = 0; nr < 470; nr++)
        for (uint64_t arg = 0; arg < 0x6000; arg++) {
            const struct seccomp_data data = {.nr = nr, .arch = NATIVE, .args = {arg, arg, arg}};
            const uint64_t args[6] = {arg, arg, arg};
            if (filter_judge(&data) != TELL || seccomp_service(nr, args) != SECCOMP_REFUSE)
                continue;
            struct seccomp_refusal r;
            assert_string_not_equal(seccomp_refusal(nr, args, &r)->rule, "seccomp");
        }
}

/* And nothing is let but what the filter knows to be good: no socket of a kind that it refuses. */
static void test_what_is_let_is_a_plain_socket(void **state) {
    static const uint64_t protocols[] = {0, 1, 2, 6, 17, 41, 58, 132, 255, 262, HIGH | 6};
    (void)state;
    for (uint64_t family = 0; family < 64; family++)
        for (uint64_t kind = 0; kind < 16; kind++)
            for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++) {
                const uint64_t args[6] = {family, kind | SOCK_CLOEXEC, protocols[i]};
                uint32_t protocol = (uint32_t)protocols[i];
                bool plain = (family == AF_INET || family == AF_INET6) &&
                             (kind == SOCK_STREAM || kind == SOCK_DGRAM) &&
                             (protocol == 0 || protocol == 6 || protocol == 17);
                plain |= family == AF_NETLINK && protocol == 0 /* NETLINK_ROUTE */;
                assert_int_equal(seccomp_service(SYS_socket, args) == SECCOMP_SOCKET, plain);
                assert_int_equal(seccomp_service(SYS_socketpair, args), SECCOMP_REFUSE);
                struct seccomp_data data = {.nr = SYS_socket, .arch = NATIVE};
                memcpy(data.args, args, sizeof args);
                assert_true(!plain || filter_judge(&data) == TELL);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_every_notified_call_has_words),
        cmocka_unit_test(test_what_is_let_is_a_plain_socket),
    };
    return cmocka_run_group_tests(tests, filter_compile, NULL);
}
