/* See filter.h. A list of what is allowed, since the gate is a small program of known needs: bytes
 * and descriptors over what it has, new sockets of the internet families, memory without code, the
 * clock. No file is opened, nothing is executed, nobody is signalled, no socket listens: what a
 * resolver's answer or an init could make of a fault in here is more of the same. The netlink
 * socket that tells the host's addresses is opened before.
 *
 * Everything else gets EPERM, so that a libc that tries something new goes on without. Programs of
 * sanitizers and for coverage have no filter: their runtimes open files. */

#include "gate/filter.h"

#include "sandbox/caps.h"
#include "sandbox/seccomp_load.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "judge this architecture's system calls first"
#endif

#define SOCK_KIND 0xf

/* In the order of how often they are made. */
static const unsigned plain[] = {
    SYS_epoll_pwait,
#if defined __x86_64__
    SYS_epoll_wait,
    SYS_poll,
#endif
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_epoll_ctl,
    SYS_close,
    SYS_connect, /* of what socket() gave */
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_getsockname,
    SYS_getpeername,
    SYS_recvfrom,
    SYS_read,
    SYS_write,
    SYS_writev,
    SYS_pwritev2, /* the log */
    SYS_pread64,
    SYS_clock_gettime,
    SYS_gettimeofday,
    SYS_ppoll,
    SYS_shutdown,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_futex,
    SYS_getrandom,
    SYS_fstat,
    SYS_lseek,
    SYS_getpid,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
};

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOAD_ARG(n) LOAD(args[n])
#define LOAD_ARG_HIGH(n)                                                                           \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[n]) + 4)
#define IF_EQ(v, then, els)  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, v, then, els)
#define IF_SET(v, then, els) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, v, then, els)
#define ALLOW                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

static const struct sock_filter judge_socket[] = {
    LOAD_ARG(0),
    IF_EQ(AF_INET, 1, 0),
    IF_EQ(AF_INET6, 0, 8),
    LOAD_ARG(1),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SOCK_KIND),
    IF_EQ(SOCK_STREAM, 1, 0),
    IF_EQ(SOCK_DGRAM, 0, 4),
    LOAD_ARG(2),
    IF_EQ(IPPROTO_IP, 3, 0),
    IF_EQ(IPPROTO_TCP, 2, 0),
    IF_EQ(IPPROTO_UDP, 1, 0),
    REFUSE,
    ALLOW,
};
/* Channels for inits: connected for good, where a pair of datagram sockets could be connected to
 * others. */
static const struct sock_filter judge_pair[] = {
    LOAD_ARG(0),
    IF_EQ(AF_UNIX, 0, 3),
    LOAD_ARG(1),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SOCK_KIND),
    IF_EQ(SOCK_SEQPACKET, 1, 0),
    REFUSE,
    ALLOW,
};
static const struct sock_filter judge_memory[] = {
    /* mmap and mprotect */
    LOAD_ARG(2),
    IF_SET(PROT_EXEC, 0, 1),
    REFUSE,
    ALLOW,
};
static const struct sock_filter judge_fcntl[] = {
    LOAD_ARG(1),
    IF_EQ(F_DUPFD_CLOEXEC, 5, 0),
    IF_EQ(F_GETFL, 4, 0),
    IF_EQ(F_SETFL, 3, 0),
    IF_EQ(F_GETFD, 2, 0),
    IF_EQ(F_SETFD, 1, 0),
    REFUSE,
    ALLOW,
};
static const struct sock_filter judge_ioctl[] = {
    LOAD_ARG(1), IF_EQ(FIONREAD, 2, 0), IF_EQ(FIONBIO, 1, 0), REFUSE, ALLOW,
};
/* Without an address: to where connect() went. */
static const struct sock_filter judge_sendto[] = {
    LOAD_ARG(4), IF_EQ(0, 0, 2), LOAD_ARG_HIGH(4), IF_EQ(0, 1, 0), REFUSE, ALLOW,
};

/* What libc makes of fstat. */
static const struct sock_filter judge_fstat[] = {
    LOAD_ARG(3),
    IF_EQ(AT_EMPTY_PATH, 1, 0),
    REFUSE,
    ALLOW,
};

#define JUDGE(call, name)                                                                          \
    { SYS_##call, judge_##name, sizeof judge_##name / sizeof judge_##name[0] }
static const struct {
    unsigned nr;
    const struct sock_filter *code;
    uint8_t len;
} judges[] = {
    JUDGE(socket, socket), JUDGE(mmap, memory),   JUDGE(mprotect, memory),  JUDGE(fcntl, fcntl),
    JUDGE(ioctl, ioctl),   JUDGE(sendto, sendto), JUDGE(newfstatat, fstat), JUDGE(socketpair, pair),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct program {
    struct sock_filter code[4 + 2 * COUNT(plain) + 128];
    size_t len;
};

static void filter_add(struct program *p, const struct sock_filter *code, size_t n) {
    memcpy(p->code + p->len, code, n * sizeof *code);
    p->len += n;
}

static void compile(struct program *p) {
    const struct sock_filter head[] = {
        LOAD(arch),
        IF_EQ(ARCH, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        LOAD(nr),
    };
    filter_add(p, head, COUNT(head));
    for (size_t i = 0; i < COUNT(plain); i++) {
        const struct sock_filter let[] = {IF_EQ(plain[i], 0, 1), ALLOW};
        filter_add(p, let, COUNT(let));
    }
    for (size_t i = 0; i < COUNT(judges); i++) {
        const struct sock_filter enter = IF_EQ(judges[i].nr, 0, judges[i].len);
        filter_add(p, &enter, 1);
        filter_add(p, judges[i].code, judges[i].len);
    }
    const struct sock_filter refuse = REFUSE;
    filter_add(p, &refuse, 1);
}

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
    struct program p = {.len = 0};
    if (caps_drop_held(e) < 0)
        return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_sys(e, "prctl");
    if (filter_is_off())
        return 0;
    compile(&p);
    return seccomp_enter(p.code, p.len * sizeof p.code[0], NULL, e);
}
