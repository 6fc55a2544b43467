/* Children that live under the filter: what is refused fails as it should, and Python works. */

#include "seccomp_fixture.h"

#include "base/fd.h"
#include "sandbox/caps.h"
#include "sandbox/seccomp_load.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { HEARD_MAX = 512 };
struct heard {
    size_t n;
    int nrs[HEARD_MAX];
};

static void send_fd(int sock, int fd) {
    char byte = 0;
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.space = {0}};
    struct iovec iov = {&byte, 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    if (sendmsg(sock, &msg, 0) < 0)
        _exit(99);
}

static int receive_fd(int sock) {
    char byte;
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {&byte, 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof control};
    if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&msg))
        return -1;
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof fd);
    return fd;
}

static void answer_one(int listener, struct heard *heard) {
    struct seccomp_notif n = {0};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n) < 0)
        return; /* the caller has died meanwhile */
    uint64_t args[6];
    memcpy(args, n.data.args, sizeof args);
    struct seccomp_refusal scratch;
    struct seccomp_notif_resp resp = {.id = n.id};
    bool lets = seccomp_service(n.data.nr, args) != SECCOMP_REFUSE;
    if (lets)
        resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    else
        resp.error = -seccomp_refusal(n.data.nr, args, &scratch)->errnum;
    (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
    if (!lets && heard->n < HEARD_MAX)
        heard->nrs[heard->n++] = n.data.nr;
}

/* Until the child has ended. Before Linux 6.11 the listener hangs up when it was reaped, too. */
static void answer_all(int listener, pid_t pid, struct heard *heard) {
    AUTO_FD ended = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p[] = {{.fd = listener, .events = POLLIN}, {.fd = ended, .events = POLLIN}};
    assert_true(ended >= 0);
    do {
        assert_true(poll(p, 2, -1) > 0);
        if (p[0].revents & POLLIN)
            answer_one(listener, heard);
    } while ((p[0].revents & POLLIN) || !p[1].revents);
}

/* Runs `body` in a child under the filter; its exit status, and what was refused. */
static int live(int (*body)(void *), void *data, struct heard *heard) {
    int socks[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct err e;
        int listener;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            seccomp_enter(filter[SECCOMP_EARLY], filter_bytes[SECCOMP_EARLY], NULL, &e) < 0 ||
            seccomp_enter(filter[SECCOMP_LATE], filter_bytes[SECCOMP_LATE], &listener, &e) < 0)
            _exit(98);
        send_fd(socks[1], listener);
        close(listener);
        _exit(body(data));
    }
    close(socks[1]);
    AUTO_FD sock = socks[0], listener = receive_fd(sock);
    assert_true(listener >= 0);
    heard->n = 0;
    answer_all(listener, pid, heard);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        fail_msg("killed by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static const struct live_case {
    long nr, args[6];
    int errnum; /* 0: works */
} live_cases[] = {
    {SYS_mount, {0}, EPERM},
    {SYS_unshare, {CLONE_NEWUSER}, EPERM},
    {SYS_clone, {CLONE_NEWUSER | SIGCHLD}, EPERM},
    {SYS_clone, {CLONE_PARENT | SIGCHLD}, EPERM},
    {SYS_ptrace, {PTRACE_TRACEME}, EPERM},
    {SYS_socket, {AF_PACKET, SOCK_RAW}, EAFNOSUPPORT},
    {SYS_socket, {AF_VSOCK, SOCK_STREAM}, EAFNOSUPPORT},
    {SYS_socket, {AF_INET, SOCK_RAW, 1}, EPERM},
    {SYS_socket, {AF_INET, SOCK_STREAM}, 0},
    {SYS_socket, {AF_INET6, SOCK_DGRAM, 17}, 0},
    {SYS_clone3, {0}, ENOSYS},
    {SYS_io_uring_setup, {1}, ENOSYS},
    {SYS_keyctl, {0}, ENOSYS},
    {SYS_personality, {0x0040000}, EPERM},
    {SYS_personality, {0xffffffff}, 0},
    {SYS_prlimit64, {1}, EPERM},
    {SYS_sync, {0}, 0},
    {600, {0}, ENOSYS},
    {0x40000000 | 39, {0}, ENOSYS},
};
enum { LIVE_NOTIFIED = 8 };

static int make_live_calls(void *data) {
    (void)data;
    for (size_t i = 0; i < sizeof live_cases / sizeof live_cases[0]; i++) {
        const struct live_case *c = &live_cases[i];
        const long *a = c->args;
        errno = 0;
        long r = syscall(c->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
        if ((r < 0 ? errno : 0) != c->errnum)
            return (int)i + 1;
    }
    return 0;
}

static void test_refused_calls_get_their_errno(void **state) {
    (void)state;
    struct heard heard;
    assert_int_equal(live(make_live_calls, NULL, &heard), 0);
    assert_int_equal(heard.n, LIVE_NOTIFIED);
    for (size_t i = 0; i < heard.n; i++)
        assert_int_equal(heard.nrs[i], live_cases[i].nr);
}

#if defined __x86_64__
static int call_i386(void *data) {
    (void)data;
    long r;
    __asm__ volatile("int $0x80" : "=a"(r) : "a"(20L /* getpid */) : "memory");
    return (int)r == -ENOSYS ? 0 : 1;
}

static void test_i386_is_refused_and_not_killed(void **state) {
    (void)state;
    struct heard heard;
    assert_int_equal(live(call_i386, NULL, &heard), 0);
    assert_int_equal(heard.n, 0);
}
#endif

/* Python with the given program or file, its output into a memfd, as nobody without capabilities.
 */
struct python {
    const char *argv[4];
    int out;
};

static int exec_python(void *data) {
    struct python *p = data;
    struct err e;
    if (geteuid() == 0 &&
        (caps_keep(&e) < 0 || setgid(65534) < 0 || setuid(65534) < 0 || caps_drop_all(&e) < 0))
        return 97;
    if (dup2(p->out, 1) < 0)
        return 96;
    execv(p->argv[0], (char *const *)(uintptr_t)p->argv);
    return 95;
}

static int run_python(struct python *p, char *out, size_t cap, struct heard *heard) {
    p->argv[0] = "/usr/bin/python3";
    AUTO_FD fd = memfd_create("output", MFD_CLOEXEC);
    assert_true(fd >= 0);
    p->out = fd;
    int status = live(exec_python, p, heard);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    struct err e;
    assert_int_equal(fd_read_all(fd, out, cap, NULL, &e), 0);
    return status;
}

static const char ordinary_work[] =
    "import asyncio, concurrent.futures, ctypes, fcntl, mmap, multiprocessing, os, resource\n"
    "import signal, socket, subprocess, sys, tempfile, threading, time\n"
    "assert subprocess.check_output(['/bin/sh', '-c', 'echo hi | cat']) == b'hi\\n'\n"
    "t = threading.Thread(target=lambda: None); t.start(); t.join()\n"
    "with concurrent.futures.ThreadPoolExecutor(4) as p: assert sum(p.map(abs, range(9))) == 36\n"
    "if __name__ == '__main__':\n"
    "    with multiprocessing.get_context('fork').Pool(2) as p: assert p.map(abs, [-1]) == [1]\n"
    "a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'\n"
    "assert socket.if_nameindex()\n"
    "socket.getaddrinfo('127.0.0.1', 80)\n"
    "s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())\n"
    "asyncio.run(asyncio.sleep(0))\n"
    "async def child():\n"
    "    p = await asyncio.create_subprocess_exec('/bin/true'); assert await p.wait() == 0\n"
    "asyncio.run(child())\n"
    "with tempfile.TemporaryDirectory() as d:\n"
    "    os.mkfifo(d + '/f'); os.symlink('f', d + '/l'); open(d + '/r', 'w').write('x')\n"
    "    fcntl.flock(open(d + '/r'), fcntl.LOCK_EX); os.link(d + '/r', d + '/h'); os.sync()\n"
    "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); resource.prlimit(0, "
    "resource.RLIMIT_CPU)\n"
    "os.sched_setaffinity(0, os.sched_getaffinity(0)); os.nice(1); os.memfd_create('m')\n"
    "os.pidfd_open(os.getpid()); mmap.mmap(-1, 4096); time.clock_gettime(time.CLOCK_REALTIME)\n"
    "os.posix_spawn('/bin/true', ['true'], {}); os.wait()\n"
    "pid, fd = os.forkpty()\n"
    "if pid == 0: os._exit(0)\n"
    "os.waitpid(pid, 0)\n"
    "try: import numpy\n"
    "except ImportError: pass\n"
    "else: assert (numpy.ones((300, 300)) @ numpy.ones((300, 300)))[0, 0] == 300\n"
    "print('done')\n";

static void test_ordinary_python_works(void **state) {
    (void)state;
    struct python p = {.argv = {NULL, "-c", ordinary_work, NULL}};
    struct heard heard;
    char out[4096];
    int status = run_python(&p, out, sizeof out, &heard);
    assert_string_equal(out, "done\n");
    assert_int_equal(status, 0);
    assert_int_equal(heard.n, 0);
}

#if defined __x86_64__
/* Line by line; with an empty list the new one is printed. */
static unsigned report_differences(char *expected, char *got) {
    unsigned differences = 0;
    while (expected || got) {
        const char *want = expected ? strsep(&expected, "\n") : "";
        const char *have = got ? strsep(&got, "\n") : "";
        if (strcmp(want, have) == 0)
            continue;
        differences++;
        print_message("# listed: %s\n# found:  %s\n", want, have);
    }
    return differences;
}

/* The sweep of tests/escape, here under nothing but the filter and no capabilities. */
static void test_sweep_matches_the_list(void **state) {
    (void)state;
    const char *dir = getenv("CLOCHE_ESCAPE_DIR");
    if (!dir)
        skip();
    char script[1024], expected_path[1024];
    snprintf(script, sizeof script, "%s/syscalls.py", dir);
    snprintf(expected_path, sizeof expected_path, "%s/syscalls.expected", dir);
    static char expected[1 << 16], out[1 << 16];
    struct err e;
    AUTO_FD fd = open(expected_path, O_RDONLY | O_CLOEXEC);
    AUTO_FD source = open(script, O_RDONLY); /* nobody may not be able to reach the tree */
    assert_true(fd >= 0 && source >= 0);
    assert_int_equal(fd_read_all(fd, expected, sizeof expected, NULL, &e), 0);
    snprintf(script, sizeof script, "/dev/fd/%d", source);
    struct python p = {.argv = {NULL, script, NULL}};
    struct heard heard;
    assert_int_equal(run_python(&p, out, sizeof out, &heard), 0);
    assert_int_equal(report_differences(expected, out), 0);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_calls_get_their_errno),
#if defined __x86_64__
        cmocka_unit_test(test_i386_is_refused_and_not_killed),
        cmocka_unit_test(test_sweep_matches_the_list),
#endif
        cmocka_unit_test(test_ordinary_python_works),
    };
    return cmocka_run_group_tests(tests, filter_compile, NULL);
}
