/* The filter, twice: every decision of the compiled program as an interpreter of our own sees it
 * (exact, for numbers, arguments and ABIs that nobody could call safely), and in children that live
 * under it. */

#include "sandbox/seccomp.h"

#include "base/fd.h"
#include "sandbox/caps.h"
#include "sandbox/seccomp_load.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined __x86_64__
#define NATIVE AUDIT_ARCH_X86_64
#else
#define NATIVE AUDIT_ARCH_AARCH64
#endif

static struct sock_filter filter[SECCOMP_PARTS_][BPF_MAXINSNS];
static size_t filter_bytes[SECCOMP_PARTS_];

static int compile(void **state) {
    (void)state;
    struct err e;
    for (int part = 0; part < SECCOMP_PARTS_; part++) {
        AUTO_FD fd = -1;
        if (seccomp_compile((enum seccomp_part)part, &fd, &e) < 0) {
            fprintf(stderr, "%s\n", e.text);
            return -1;
        }
        ssize_t n = read(fd, filter[part], sizeof filter[part]);
        if (n <= 0)
            return -1;
        filter_bytes[part] = (size_t)n;
    }
    return 0;
}

/* --- the interpreter --- */

static size_t jump(const struct sock_filter *f, uint32_t a) {
    switch (BPF_OP(f->code)) {
    case BPF_JA:
        return f->k;
    case BPF_JEQ:
        return a == f->k ? f->jt : f->jf;
    case BPF_JGT:
        return a > f->k ? f->jt : f->jf;
    case BPF_JGE:
        return a >= f->k ? f->jt : f->jf;
    case BPF_JSET:
        return a & f->k ? f->jt : f->jf;
    default:
        fail_msg("unexpected jump %#x", f->code);
        return 0;
    }
}

static uint32_t judge_part(int part, const struct seccomp_data *data) {
    uint32_t a = 0;
    for (size_t pc = 0; pc < filter_bytes[part] / sizeof filter[part][0]; pc++) {
        const struct sock_filter *f = &filter[part][pc];
        switch (f->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(f->k + sizeof a <= sizeof *data);
            memcpy(&a, (const char *)data + f->k, sizeof a);
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= f->k;
            break;
        case BPF_RET | BPF_K:
            return f->k;
        default:
            assert_int_equal(BPF_CLASS(f->code), BPF_JMP);
            pc += jump(f, a);
        }
    }
    fail_msg("the filter ends without an answer");
    return 0;
}

/* The lower number wins, as in the kernel (both are ALLOW, USER_NOTIF or ERRNO here). */
static uint32_t judge(const struct seccomp_data *data) {
    uint32_t early = judge_part(SECCOMP_EARLY, data), late = judge_part(SECCOMP_LATE, data);
    return (early & SECCOMP_RET_ACTION_FULL) <= (late & SECCOMP_RET_ACTION_FULL) ? early : late;
}

/* --- decisions --- */

#define ALLOW  SECCOMP_RET_ALLOW
#define TELL   SECCOMP_RET_USER_NOTIF
#define NOTE   (SECCOMP_RET_USER_NOTIF | 1) /* and goes on */
#define ERR(n) (SECCOMP_RET_ERRNO | (n))
#define HIGH   0x7700000000ull /* bits that the kernel does not read in an int */

static const struct decision {
    const char *behaviour;
    int nr;
    uint64_t args[6];
    uint32_t answer;
} decisions[] = {
    {"plain read", SYS_read, {0}, ALLOW},
    {"fork", SYS_clone, {SIGCHLD}, ALLOW},
    {"a thread",
     SYS_clone,
     {CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD},
     ALLOW},
    {"clone with NEWUSER", SYS_clone, {CLONE_NEWUSER | SIGCHLD}, TELL},
    {"clone with NEWNS", SYS_clone, {CLONE_NEWNS}, TELL},
    {"clone with NEWPID", SYS_clone, {CLONE_NEWPID}, TELL},
    {"clone with NEWNET", SYS_clone, {CLONE_NEWNET}, TELL},
    {"clone with NEWIPC", SYS_clone, {CLONE_NEWIPC}, TELL},
    {"clone with NEWUTS", SYS_clone, {CLONE_NEWUTS}, TELL},
    {"clone with NEWCGROUP", SYS_clone, {CLONE_NEWCGROUP}, TELL},
    {"clone with all of them and high bits", SYS_clone, {HIGH | 0x7e020000}, TELL},
    {"a sibling instead of a child", SYS_clone, {CLONE_PARENT | SIGCHLD}, TELL},
    {"clone3", SYS_clone3, {0}, ERR(ENOSYS)},
    {"unshare of files only", SYS_unshare, {CLONE_FILES}, TELL},
    {"AF_UNIX", SYS_socket, {AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC}, ALLOW},
    {"AF_UNIX SEQPACKET", SYS_socket, {AF_UNIX, SOCK_SEQPACKET}, ALLOW},
    {"TCP", SYS_socket, {AF_INET, SOCK_STREAM, 0}, NOTE},
    {"TCP by name, non-blocking", SYS_socket, {AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 6}, NOTE},
    {"UDP", SYS_socket, {AF_INET, SOCK_DGRAM, 17}, NOTE},
    {"TCP with high bits", SYS_socket, {HIGH | AF_INET, HIGH | SOCK_STREAM, HIGH}, NOTE},
    {"MPTCP", SYS_socket, {AF_INET, SOCK_STREAM, 262}, ERR(EPROTONOSUPPORT)},
    {"SCTP", SYS_socket, {AF_INET, SOCK_STREAM, 132}, ERR(EPROTONOSUPPORT)},
    {"ping", SYS_socket, {AF_INET, SOCK_DGRAM, 1}, ERR(EPROTONOSUPPORT)},
    {"raw IP", SYS_socket, {AF_INET, SOCK_RAW | SOCK_CLOEXEC, 1}, TELL},
    {"raw IPv6", SYS_socket, {AF_INET6, SOCK_RAW, 0}, TELL},
    {"SCTP by type", SYS_socket, {AF_INET, SOCK_SEQPACKET}, TELL},
    {"SOCK_PACKET", SYS_socket, {AF_INET, SOCK_PACKET}, TELL},
    {"netlink route", SYS_socket, {AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0}, NOTE},
    {"netlink netfilter", SYS_socket, {AF_NETLINK, SOCK_RAW, 12}, TELL},
    {"AF_PACKET", SYS_socket, {AF_PACKET, SOCK_RAW}, TELL},
    {"AF_PACKET with high bits", SYS_socket, {HIGH | AF_PACKET, SOCK_DGRAM}, TELL},
    {"AF_VSOCK", SYS_socket, {AF_VSOCK, SOCK_STREAM}, TELL},
    {"AF_ALG", SYS_socket, {AF_ALG, SOCK_SEQPACKET}, TELL},
    {"a family of the future", SYS_socket, {99, SOCK_STREAM}, TELL},
    {"a negative family", SYS_socket, {UINT64_MAX, SOCK_STREAM}, TELL},
    {"AF_UNIX pair", SYS_socketpair, {AF_UNIX, SOCK_STREAM}, ALLOW},
    {"AF_TIPC pair", SYS_socketpair, {AF_TIPC, SOCK_STREAM}, TELL},
    {"personality query", SYS_personality, {0xffffffff}, ALLOW},
    {"personality query, sign-extended", SYS_personality, {UINT64_MAX}, ALLOW},
    {"personality Linux", SYS_personality, {0}, ALLOW},
    {"personality without randomisation", SYS_personality, {0x0040000}, ERR(EPERM)},
    {"own limits", SYS_prlimit64, {0}, ALLOW},
    {"limits of init", SYS_prlimit64, {1}, ERR(EPERM)},
    {"the limit of core dumps, asked", SYS_prlimit64, {0, RLIMIT_CORE, 0, 4096}, ALLOW},
    {"the limit of core dumps, set", SYS_prlimit64, {0, RLIMIT_CORE, 4096}, ERR(0)},
    {"the limit of core dumps, set from high up", SYS_prlimit64, {0, RLIMIT_CORE, HIGH}, ERR(0)},
    {"the limit of core dumps, the old way", SYS_setrlimit, {RLIMIT_CORE}, ERR(0)},
    {"another limit", SYS_prlimit64, {0, RLIMIT_NOFILE, 4096}, ALLOW},
    {"lingering", SYS_setsockopt, {3, SOL_SOCKET, SO_LINGER}, ERR(0)},
    {"a flow label", SYS_setsockopt, {3, 41, 32}, ERR(ENOPROTOOPT)},
    {"memory", SYS_mmap, {0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS}, ALLOW},
    {"huge pages", SYS_mmap, {0, 4096, 3, MAP_HUGETLB | MAP_ANONYMOUS}, ERR(ENOMEM)},
    {"file watches", SYS_inotify_init1, {0}, TELL},
    {"a flush of the host's disk", SYS_fsync, {3}, ERR(0)},
    {"emptying the page cache", SYS_fadvise64, {3, 0, 0, 4}, ERR(0)},
    {"a terminal's size", SYS_ioctl, {0, TIOCGWINSZ}, ALLOW},
    {"TIOCSTI", SYS_ioctl, {0, TIOCSTI}, TELL},
    {"TIOCSTI with high bits", SYS_ioctl, {0, HIGH | TIOCSTI}, TELL},
    {"TIOCLINUX", SYS_ioctl, {0, TIOCLINUX}, TELL},
    {"a line discipline", SYS_ioctl, {0, TIOCSETD}, TELL},
    {"file flags", SYS_fcntl, {0, F_GETFL}, ALLOW},
    {"a record lock", SYS_fcntl, {0, F_SETLK}, NOTE},
    {"a record lock that waits, with high bits", SYS_fcntl, {0, HIGH | F_SETLKW}, NOTE},
    {"who has a record lock", SYS_fcntl, {0, F_GETLK}, NOTE},
    {"a lock of an open file", SYS_fcntl, {0, F_OFD_SETLK}, NOTE},
    {"a lock of a whole file", SYS_flock, {0, 2}, NOTE},
    {"reads around the cache", SYS_openat, {0, 0, O_RDONLY | O_DIRECT}, ERR(EINVAL)},
    {"reads around the cache, later", SYS_fcntl, {0, F_SETFL, O_DIRECT}, ERR(EINVAL)},
    {"reads that the cache forgets", SYS_preadv2, {0, 0, 0, 0, 0, 0x80}, ERR(EOPNOTSUPP)},
    {"reads that do not wait", SYS_preadv2, {0, 0, 0, 0, 0, 8}, ALLOW},
    {"flags that no filter sees", SYS_openat2, {0}, ERR(ENOSYS)},
    {"a non-blocking file", SYS_fcntl, {0, F_SETFL, O_NONBLOCK}, ALLOW},
    {"a pipe's size", SYS_fcntl, {0, F_GETPIPE_SZ}, ALLOW},
    {"a bigger pipe", SYS_fcntl, {0, F_SETPIPE_SZ, 1 << 20}, TELL},
    {"a bigger pipe with high bits", SYS_fcntl, {0, HIGH | F_SETPIPE_SZ}, TELL},
    {"a lease", SYS_fcntl, {0, F_SETLEASE}, ERR(EPERM)},
    {"mkfifo", SYS_mknodat, {0, 0, S_IFIFO | 0600}, ALLOW},
    {"a file by mknod", SYS_mknodat, {0, 0, S_IFREG | 0600}, ALLOW},
    {"a character device", SYS_mknodat, {0, 0, S_IFCHR | 0600}, TELL},
    {"a block device with high bits", SYS_mknodat, {0, 0, HIGH | S_IFBLK | 0600}, TELL},
    {"own affinity", SYS_sched_setaffinity, {0}, ALLOW},
    {"init's affinity", SYS_sched_setaffinity, {HIGH | 1}, ERR(EPERM)},
    {"own priority", SYS_setpriority, {0, 0, 5}, ERR(0)},
    {"init's priority", SYS_setpriority, {0, 1, 19}, ERR(0)},
    {"a higher priority", SYS_setpriority, {0, 0, (uint32_t)-5}, ERR(EACCES)},
    {"an idle process", SYS_sched_setscheduler, {0, SCHED_IDLE}, ERR(0)},
    {"the same for itself only", SYS_sched_setscheduler, {0, SCHED_IDLE | 0x40000000}, ERR(0)},
    {"real time", SYS_sched_setscheduler, {0, SCHED_FIFO}, ERR(EPERM)},
    {"scheduler attributes", SYS_sched_setattr, {0}, ERR(EPERM)},
    {"an epoll descriptor", SYS_epoll_create1, {0}, NOTE},
    {"the list of interfaces", SYS_ioctl, {0, 0x8912}, NOTE},
    {"ethtool", SYS_ioctl, {0, 0x8946}, ERR(EOPNOTSUPP)},
    {"the flags of an interface", SYS_ioctl, {0, 0x8913}, ALLOW},
    {"a table of futexes", SYS_prctl, {78}, ERR(EINVAL)},
    {"a prctl of the future", SYS_prctl, {200}, ERR(EINVAL)},
    {"a name for a mapping", SYS_prctl, {0x53564d41}, ALLOW},
    {"a filter of one's own", SYS_seccomp, {1, 0}, ERR(EINVAL)},
    {"a listener of one's own", SYS_seccomp, {1, 8}, ERR(EINVAL)},
    {"what seccomp can do", SYS_seccomp, {2, 0}, ALLOW},
    {"a filter through prctl", SYS_prctl, {PR_SET_SECCOMP, 2}, ERR(EINVAL)},
    {"a thread's name", SYS_prctl, {PR_SET_NAME}, ALLOW},
    {"core scheduling", SYS_prctl, {62}, ERR(EINVAL)},
    {"a socket option", SYS_setsockopt, {3, SOL_SOCKET, SO_REUSEADDR}, ALLOW},
    {"a socket filter", SYS_setsockopt, {3, SOL_SOCKET, SO_ATTACH_FILTER}, ERR(EPERM)},
    {"a bigger receive buffer", SYS_setsockopt, {3, SOL_SOCKET, SO_RCVBUF}, ERR(0)},
    {"a bigger send buffer", SYS_setsockopt, {3, SOL_SOCKET, HIGH | SO_SNDBUF}, NOTE},
    {"errors of IPv4", SYS_setsockopt, {3, 0, 11}, ERR(0)},
    {"errors of IPv6", SYS_setsockopt, {3, 41, 25}, ERR(0)},
    {"a multicast group", SYS_setsockopt, {3, 0, 35}, ERR(ENODEV)},
    {"a multicast group of IPv6", SYS_setsockopt, {3, 41, 20}, ERR(ENODEV)},
    {"time stamps", SYS_setsockopt, {3, SOL_SOCKET, SO_TIMESTAMP}, ERR(ENOPROTOOPT)},
    {"time stamps of all kinds", SYS_setsockopt, {3, SOL_SOCKET, 65}, ERR(ENOPROTOOPT)},
    {"the last time stamp", SYS_ioctl, {3, 0x8906}, ERR(ENOENT)},
    {"merged memory", SYS_prctl, {67, 1}, ERR(EINVAL)},
    {"kernel TLS", SYS_setsockopt, {3, 6, 31}, ERR(ENOPROTOOPT)},
    {"sync does nothing", SYS_sync, {0}, ERR(0)},
    {"sysinfo, which init answers", SYS_sysinfo, {0}, NOTE},
    {"get_mempolicy, for numpy", SYS_get_mempolicy, {0}, ALLOW},
    {"set_mempolicy", SYS_set_mempolicy, {0}, ERR(EPERM)},
    {"landlock's rules", SYS_landlock_create_ruleset, {0}, ERR(ENOSYS)},
    {"pages into pipes", SYS_vmsplice, {0}, ERR(ENOSYS)},
    {"pages of files into sockets", SYS_splice, {0}, ERR(EINVAL)},
    {"the same by sendfile", SYS_sendfile, {0}, ERR(EINVAL)},
    {"memfd_create, which init answers", SYS_memfd_create, {0}, NOTE},
    {"pidfd_open", SYS_pidfd_open, {0}, ALLOW},
    {"fchmodat2", 452, {0}, ALLOW},
    {"map_shadow_stack", 453, {0}, ALLOW},
    {"statmount", 457, {0}, ERR(ENOSYS)},
    {"mseal", 462, {0}, ALLOW},
    {"removexattrat", 466, {0}, ALLOW},
    {"open_tree_attr", 467, {0}, TELL},
    {"file_setattr", 469, {0}, ERR(ENOSYS)},
};

static void test_decisions(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof decisions / sizeof decisions[0]; i++) {
        const struct decision *d = &decisions[i];
        struct seccomp_data data = {.nr = d->nr, .arch = NATIVE};
        for (size_t k = 0; k < 6; k++)
            data.args[k] = d->args[k];
        uint32_t answer = judge(&data);
        if (answer == TELL && seccomp_service(d->nr, d->args) != SECCOMP_REFUSE)
            answer = NOTE;
        if (answer != d->answer)
            fail_msg("%s: %#x instead of %#x", d->behaviour, answer, d->answer);
    }
}

/* Refused whatever the arguments are, with EPERM or ENOSYS, notified or not. */
static const int always_refused[] = {
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_unshare,
    SYS_setns,
    SYS_clone3,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_process_madvise,
    SYS_pidfd_getfd,
    SYS_kcmp,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_quotactl,
    SYS_quotactl_fd,
    SYS_swapon,
    SYS_swapoff,
    SYS_reboot,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_acct,
    SYS_syslog,
    SYS_vhangup,
    SYS_nfsservctl,
    SYS_lookup_dcookie,
    SYS_migrate_pages,
    SYS_move_pages,
    SYS_mbind,
    SYS_set_mempolicy,
    SYS_fanotify_init,
    SYS_chroot,
    SYS_memfd_secret,
    SYS_io_setup,
#if defined __x86_64__
    SYS_modify_ldt,
    SYS_iopl,
    SYS_ioperm,
    SYS_create_module,
    SYS_uselib,
    SYS_ustat,
    SYS_sysfs,
#endif
};

static void test_refused_whatever_the_arguments(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof always_refused / sizeof always_refused[0]; i++)
        for (unsigned k = 0; k < 3; k++) {
            const uint64_t arg = k == 0 ? 0 : k == 1 ? UINT64_MAX : 1;
            const struct seccomp_data data = {
                .nr = always_refused[i], .arch = NATIVE, .args = {arg, arg, arg, arg, arg, arg}};
            uint32_t answer = judge(&data);
            if (answer != TELL && answer != ERR(EPERM) && answer != ERR(ENOSYS))
                fail_msg("call %d: %#x", data.nr, answer);
        }
}

static void test_unknown_numbers_do_not_exist(void **state) {
    (void)state;
    struct seccomp_data data = {.arch = NATIVE};
    for (data.nr = 470; data.nr < 5000; data.nr++)
        assert_int_equal(judge(&data), ERR(ENOSYS));
    for (data.nr = 337; data.nr < 424; data.nr++)
        assert_int_equal(judge(&data), ERR(ENOSYS));
    const int far[] = {0x7fffffff, -1, -2, 0x40000000, (int)0x80000000};
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        data.nr = far[i];
        assert_int_equal(judge(&data), ERR(ENOSYS));
    }
}

static void test_foreign_abis_do_not_exist(void **state) {
    (void)state;
    const uint32_t archs[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_S390X, 0};
    for (int nr = 0; nr < 600; nr++) {
        for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++)
            assert_int_equal(judge(&(struct seccomp_data){.nr = nr, .arch = archs[i]}),
                             ERR(ENOSYS));
        const struct seccomp_data x32 = {.nr = nr | 0x40000000, .arch = NATIVE};
        assert_int_equal(judge(&x32), ERR(ENOSYS));
    }
}

static void test_nothing_kills(void **state) {
    (void)state;
    for (int part = 0; part < SECCOMP_PARTS_; part++) {
        for (size_t i = 0; i < filter_bytes[part] / sizeof filter[part][0]; i++) {
            if (BPF_CLASS(filter[part][i].code) != BPF_RET)
                continue;
            uint32_t action = filter[part][i].k & SECCOMP_RET_ACTION_FULL;
            assert_true(action == ALLOW || action == SECCOMP_RET_ERRNO ||
                        (action == TELL && part == SECCOMP_LATE));
        }
    }
}

/* --- words --- */

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
            if (judge(&data) != TELL || seccomp_service(nr, args) != SECCOMP_REFUSE)
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
                assert_true(!plain || judge(&data) == TELL);
            }
}

/* --- life under the filter --- */

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

/* The listener hangs up when the last process under the filter is gone. */
static void answer_all(int listener, struct heard *heard) {
    for (;;) {
        struct pollfd p = {.fd = listener, .events = POLLIN};
        assert_int_equal(poll(&p, 1, -1), 1);
        if (p.revents & POLLIN)
            answer_one(listener, heard);
        else
            return;
    }
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
    answer_all(listener, heard);
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
        cmocka_unit_test(test_decisions),
        cmocka_unit_test(test_refused_whatever_the_arguments),
        cmocka_unit_test(test_unknown_numbers_do_not_exist),
        cmocka_unit_test(test_foreign_abis_do_not_exist),
        cmocka_unit_test(test_nothing_kills),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_every_notified_call_has_words),
        cmocka_unit_test(test_what_is_let_is_a_plain_socket),
        cmocka_unit_test(test_refused_calls_get_their_errno),
#if defined __x86_64__
        cmocka_unit_test(test_i386_is_refused_and_not_killed),
        cmocka_unit_test(test_sweep_matches_the_list),
#endif
        cmocka_unit_test(test_ordinary_python_works),
    };
    return cmocka_run_group_tests(tests, compile, NULL);
}
