/* See filter.h. SECURITY: the usher is the one process that has sockets of the host's network
 * namespace and reads what a sandbox sends. So there is no socket(), no connect() and no bind(),
 * nothing that is sent has an address, none that begins a connection (MSG_FASTOPEN), and messages
 * with descriptors or control data go to init and to programs that asked for a name, by number. */

#include "usher/filter.h"

#include "sandbox/seccomp_load.h"
#include "usher/usher.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "which architecture is this?"
#endif

#if defined __has_feature
#if __has_feature(address_sanitizer)
#define SANITIZED /* it looks at the stack before each function that does not return */
#endif
#elif defined __SANITIZE_ADDRESS__
#define SANITIZED
#endif

static const unsigned plain[] = {
#if defined SANITIZED
    SYS_sigaltstack,
#endif

    SYS_recvfrom,      SYS_recvmsg,      SYS_epoll_pwait,
#if defined __x86_64__
    SYS_epoll_wait,
#endif
    SYS_epoll_ctl,     SYS_accept4,      SYS_shutdown,        SYS_close,
    SYS_clock_gettime, SYS_brk,          SYS_munmap,          SYS_mremap,
    SYS_madvise,       SYS_rt_sigreturn, SYS_restart_syscall, SYS_exit_group,
};

#define LOAD(field)          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOAD_LOW(n)          LOAD(args[n])
#define LOAD_HIGH(n)         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[n]) + 4)
#define IF_EQ(v, then, els)  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, v, then, els)
#define IF_SET(v, then, els) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, v, then, els)
#define IF_GT(v, then, els)  BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, v, then, els)
#define ALLOW                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

/* Each is entered when the number fits, and ends in an answer. */
static const struct sock_filter judge_sendto[] = {
    LOAD_LOW(3),  IF_EQ(MSG_DONTWAIT | MSG_NOSIGNAL, 0, 5),
    LOAD_LOW(4),  IF_EQ(0, 0, 3),
    LOAD_HIGH(4), IF_EQ(0, 0, 1),
    ALLOW,        KILL,
};
static const struct sock_filter judge_sendmsg[] = {
    LOAD_LOW(0),
    IF_GT(FILTER_NAMES + USHER_NAMES - 1, 4, 0),
    LOAD_LOW(2),
    IF_EQ(MSG_NOSIGNAL, 1, 0),
    IF_EQ(MSG_DONTWAIT | MSG_NOSIGNAL, 0, 1),
    ALLOW,
    KILL,
};
static const struct sock_filter judge_setsockopt[] = {
    LOAD_LOW(1),
    IF_EQ(IPPROTO_TCP, 0, 2),
    LOAD_LOW(2),
    IF_EQ(TCP_NODELAY, 4, 5),
    IF_EQ(SOL_SOCKET, 0, 4),
    LOAD_LOW(2),
    IF_EQ(SO_RCVLOWAT, 1, 0),
    IF_EQ(SO_LINGER, 0, 1),
    ALLOW,
    KILL,
};
static const struct sock_filter judge_getsockopt[] = {
    LOAD_LOW(1), IF_EQ(IPPROTO_TCP, 0, 3), LOAD_LOW(2), IF_EQ(TCP_INFO, 0, 1), ALLOW, KILL,
};
static const struct sock_filter judge_mmap[] = {
    LOAD_LOW(2), IF_SET(PROT_EXEC, 3, 0), LOAD_LOW(3), IF_SET(MAP_ANONYMOUS, 0, 1), ALLOW, KILL,
};

static const struct {
    unsigned nr;
    const struct sock_filter *code;
    uint8_t len;
} judges[] = {
#define JUDGE(name)                                                                                \
    { SYS_##name, judge_##name, sizeof judge_##name / sizeof judge_##name[0] }
    JUDGE(sendto), JUDGE(sendmsg), JUDGE(setsockopt), JUDGE(getsockopt), JUDGE(mmap),
};

struct program {
    struct sock_filter code[128];
    size_t n;
};

static void filter_add(struct program *p, const struct sock_filter *code, size_t n) {
    memcpy(p->code + p->n, code, n * sizeof *code);
    p->n += n;
}

int filter_enter(struct err *e) {
    struct program p = {.n = 0};
    const struct sock_filter begin[] = {LOAD(arch), IF_EQ(ARCH, 1, 0), KILL, LOAD(nr)};
    const struct sock_filter allow = ALLOW, kill = KILL;
    filter_add(&p, begin, sizeof begin / sizeof *begin);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        const struct sock_filter is = IF_EQ(plain[i], 0, 1);
        filter_add(&p, &is, 1);
        filter_add(&p, &allow, 1);
    }
    for (size_t i = 0; i < sizeof judges / sizeof *judges; i++) {
        const struct sock_filter is = IF_EQ(judges[i].nr, 0, judges[i].len);
        filter_add(&p, &is, 1);
        filter_add(&p, judges[i].code, judges[i].len);
    }
    filter_add(&p, &kill, 1);
    return seccomp_enter(p.code, p.n * sizeof p.code[0], NULL, e);
}
