/* The system call filter: what is refused, with which errno, and in which words.
 *
 * Theory of operation. Everything is allowed but what the table `rules` names; a row refuses a call
 * altogether or for some arguments. Rows with words for people become notifications: the caller
 * waits while init asks seccomp_refusal for the errno and remembers the words. Rows without words
 * are calls that libraries try and do without; they get their errno from the kernel at once.
 * Sockets with which the network namespace can be used are notified too, and let: init remembers
 * that there was one.
 *
 * There are two programs (see the header). The late one has what is notified, since there is a
 * listener for each sandbox, and what a kernel still has to do on its way in. Of two answers the
 * kernel takes an errno rather than a notification, and either rather than leave to go on.
 *
 * libseccomp turns the table into a binary tree over the call numbers. In front of it goes a
 * prologue written by hand, for what libseccomp cannot say: ranges of numbers, "anything but these
 * values", and a mask on a value that is then compared with several. The prologue answers a foreign
 * ABI (i386; x32 has bit 30 of the number set) and every number that nobody has judged yet with
 * ENOSYS. So the kernel's newest calls stay shut until somebody raises NR_LAST here.
 *
 * SECURITY: the kernel takes int arguments from the low half of a register, so comparisons look at
 * those 32 bits only; a comparison of 64 bits would be passed by setting a bit that nobody reads.
 */

#include "sandbox/seccomp.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SOCK_KIND 0xf /* the rest of a socket's type are SOCK_CLOEXEC and SOCK_NONBLOCK */

/* Newer than Debian 12's headers and than libseccomp 2.5.4; the same number on every architecture.
 */
enum {
    NR_cachestat = 451,
    NR_futex_wake = 454,
    NR_futex_wait = 455,
    NR_futex_requeue = 456,
    NR_statmount = 457,
    NR_listmount = 458,
    NR_lsm_get_self_attr = 459,
    NR_lsm_set_self_attr = 460,
    NR_lsm_list_modules = 461,
    NR_open_tree_attr = 467,
    NR_file_getattr = 468,
    NR_file_setattr = 469,
    NR_LAST = 469, /* of Linux 6.18; every number up to here was judged */
};

/* Numbers that the architecture leaves empty below the common ones, which start at 424. */
#if defined __x86_64__
enum { GAP_FIRST = 337, GAP_LAST = 423 };
#elif defined __aarch64__
enum { GAP_FIRST = 295, GAP_LAST = 423 };
#else
#error "judge this architecture's system calls first"
#endif

#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#endif
#ifndef SO_ATTACH_REUSEPORT_CBPF
#define SO_ATTACH_REUSEPORT_CBPF 51
#endif
enum { SOL_TCP_ = 6, TCP_ULP_ = 31, SOL_IPV6_ = 41, IPV6_FLOWLABEL_MGR_ = 32, F_SETDELEG_ = 1040 };

#define INT_BITS UINT32_MAX

struct condition {
    unsigned arg;
    uint32_t mask; /* 0: no condition */
    uint32_t value;
};

struct rule {
    int nr;
    int errnum;               /* 0: answered as if it had been done */
    struct condition when[2]; /* all must hold */
    bool prologue;            /* decided there: the row is here for its words */
    bool on_the_way;          /* a kernel does it itself before it is confined */
    const char *op;           /* NULL: quiet */
    const char *detail;
    const char *rule;
};

#define NOT_HERE " is not available inside a sandbox"

#define QUIET_NR(number, name, err)                                                                \
    { .nr = (number), .errnum = (err), .rule = "seccomp:" #name }
#define QUIET(name, err)     QUIET_NR(SYS_##name, name, err)
#define QUIET_NEW(name, err) QUIET_NR(NR_##name, name, err)
#define QUIET_IF(name, err, ...)                                                                   \
    { .nr = SYS_##name, .errnum = (err), .when = {__VA_ARGS__}, .rule = "seccomp:" #name }
#define ON_THE_WAY_IF(name, err, ...)                                                              \
    {                                                                                              \
        .nr = SYS_##name, .errnum = (err), .when = {__VA_ARGS__}, .on_the_way = true,              \
        .rule = "seccomp:" #name                                                                   \
    }
#define TELL_NR(number, name, err, what)                                                           \
    {                                                                                              \
        .nr = (number), .errnum = (err), .op = (what), .detail = #name "()" NOT_HERE,              \
        .rule = "seccomp:" #name                                                                   \
    }
#define TELL(name, err, what)     TELL_NR(SYS_##name, name, err, what)
#define TELL_NEW(name, err, what) TELL_NR(NR_##name, name, err, what)
#define TELL_IF(name, err, what, shown, ...)                                                       \
    {                                                                                              \
        .nr = SYS_##name, .errnum = (err), .when = {__VA_ARGS__}, .op = (what),                    \
        .detail = shown NOT_HERE, .rule = "seccomp:" #name                                         \
    }
#define WORDS_IF(name, err, what, shown, ...)                                                      \
    {                                                                                              \
        .nr = SYS_##name, .errnum = (err), .when = {__VA_ARGS__}, .prologue = true, .op = (what),  \
        .detail = shown NOT_HERE, .rule = "seccomp:" #name                                         \
    }
#define IS(a, v)                                                                                   \
    { .arg = (a), .mask = INT_BITS, .value = (uint32_t)(v) }
#define BIT(a, v)                                                                                  \
    { .arg = (a), .mask = (uint32_t)(v), .value = (uint32_t)(v) }

#define ALWAYS                                                                                     \
    { .mask = 0 }

#define CLONE_NS(flag, what)                                                                       \
    TELL_IF(clone, EPERM, "make a new " what " namespace", "clone(" #flag ")", BIT(0, flag))
#define PTRACE(request, what) TELL_IF(ptrace, EPERM, what, "ptrace(" #request ")", IS(0, request))
#define FAMILY(family, what)                                                                       \
    WORDS_IF(socket, EAFNOSUPPORT, "open a " what " socket", "socket(" #family ")", IS(0, family))

/* The first row that fits gives the words, so special cases stand before the general one. */
static const struct rule rules[] = {
    /* Namespaces. CLONE_PARENT would give the zygote children that it knows nothing of. */
    CLONE_NS(CLONE_NEWUSER, "user"),
    CLONE_NS(CLONE_NEWNS, "mount"),
    CLONE_NS(CLONE_NEWPID, "pid"),
    CLONE_NS(CLONE_NEWNET, "network"),
    CLONE_NS(CLONE_NEWIPC, "ipc"),
    CLONE_NS(CLONE_NEWUTS, "uts"),
    CLONE_NS(CLONE_NEWCGROUP, "cgroup"),
    TELL_IF(clone, EPERM, "start a process on its parent's behalf", "clone(CLONE_PARENT)",
            BIT(0, CLONE_PARENT)),
    QUIET(clone3, ENOSYS), /* its flags are in memory; libc falls back to clone */
    TELL(unshare, EPERM, "make a new namespace"),
    TELL(setns, EPERM, "enter another namespace"),

    /* Mounts. */
    TELL(mount, EPERM, "mount a file system"),
    TELL(umount2, EPERM, "unmount a file system"),
    TELL(pivot_root, EPERM, "change the root file system"),
    TELL(chroot, EPERM, "change the root directory"),
    TELL(open_tree, EPERM, "copy a mount"),
    TELL_NEW(open_tree_attr, EPERM, "copy a mount"),
    TELL(move_mount, EPERM, "move a mount"),
    TELL(mount_setattr, EPERM, "change a mount"),
    TELL(fsopen, EPERM, "mount a file system"),
    TELL(fsconfig, EPERM, "mount a file system"),
    TELL(fsmount, EPERM, "mount a file system"),
    TELL(fspick, EPERM, "change a mount"),
    QUIET_NEW(statmount, ENOSYS),
    QUIET_NEW(listmount, ENOSYS),
    QUIET(quotactl, EPERM),
    QUIET(quotactl_fd, EPERM),
    QUIET(name_to_handle_at, EPERM),
    TELL(open_by_handle_at, EPERM, "open a file by its handle"),
    QUIET(fanotify_init, EPERM),
    QUIET_NEW(file_getattr, ENOSYS),
    QUIET_NEW(file_setattr, ENOSYS),
    TELL_IF(mknodat, EPERM, "make a device node", "mknodat(S_IFCHR)", {2, S_IFMT, S_IFCHR}),
    TELL_IF(mknodat, EPERM, "make a device node", "mknodat(S_IFBLK)", {2, S_IFMT, S_IFBLK}),
    /* All that a sandbox can write to is memory; the rest is the host's, and flushing that on a
     * stranger's request would stall everyone. */
    QUIET(sync, 0),
    QUIET(syncfs, 0),
    QUIET(fsync, 0),
    QUIET(fdatasync, 0),
    QUIET(sync_file_range, 0),
    QUIET_IF(msync, 0, BIT(2, MS_SYNC)),
    QUIET_IF(fadvise64, 0, IS(3, POSIX_FADV_DONTNEED)), /* would empty everyone's page cache */
    /* Watches on /usr tell what the host and the neighbours open there, and each instance counts
     * against the 128 of the user who started us, the host's root. */
    TELL(inotify_init1, ENOSYS, "watch files for changes"),
    QUIET_IF(fcntl, EINVAL, IS(1, F_NOTIFY)),

    /* Other processes. With a single id init has the caller's uid, hence the pid 1. */
    PTRACE(PTRACE_TRACEME, "run under a debugger"),
    PTRACE(PTRACE_ATTACH, "attach to another process"),
    PTRACE(PTRACE_SEIZE, "attach to another process"),
    TELL(ptrace, EPERM, "debug a process"),
    TELL(process_vm_readv, EPERM, "read another process's memory"),
    TELL(process_vm_writev, EPERM, "write another process's memory"),
    TELL(pidfd_getfd, EPERM, "take a descriptor from another process"),
    QUIET(process_madvise, EPERM),
    QUIET(process_mrelease, EPERM),
    QUIET(kcmp, EPERM),
    QUIET_IF(sched_setaffinity, EPERM, IS(0, 1)),
    QUIET_IF(sched_setscheduler, EPERM, IS(0, 1)),
    QUIET_IF(sched_setparam, EPERM, IS(0, 1)),
    QUIET_IF(sched_setattr, EPERM, IS(0, 1)),
    QUIET_IF(setpriority, EPERM, IS(1, 1)),
    QUIET_IF(setpriority, EPERM, IS(0, PRIO_USER)),
    QUIET_IF(ioprio_set, EPERM, IS(1, 1)),
    QUIET_IF(ioprio_set, EPERM, IS(0, 3)), /* IOPRIO_WHO_USER */

    /* Kernel machinery that programs can do without, and that has a long record of holes. */
    QUIET(io_uring_setup, ENOSYS),
    QUIET(io_uring_enter, ENOSYS),
    QUIET(io_uring_register, ENOSYS),
    QUIET(io_setup, ENOSYS), /* fs.aio-max-nr is one number for the whole machine */
    TELL(bpf, EPERM, "load a BPF program"),
    TELL(perf_event_open, EPERM, "use performance counters"),
    QUIET(userfaultfd, ENOSYS),
    QUIET(keyctl, ENOSYS),
    QUIET(add_key, ENOSYS),
    QUIET(request_key, ENOSYS),
    QUIET(memfd_secret, ENOSYS),
    QUIET(remap_file_pages, ENOSYS),
    QUIET(futex_waitv, ENOSYS),
    QUIET_NEW(futex_wake, ENOSYS),
    QUIET_NEW(futex_wait, ENOSYS),
    QUIET_NEW(futex_requeue, ENOSYS),
    QUIET_NEW(cachestat, ENOSYS), /* shows which files others use */
    QUIET_NEW(lsm_get_self_attr, ENOSYS),
    QUIET_NEW(lsm_set_self_attr, ENOSYS),
    QUIET_NEW(lsm_list_modules, ENOSYS),
    QUIET(mbind, EPERM),
    QUIET(set_mempolicy, EPERM),
    QUIET(set_mempolicy_home_node, EPERM),
    QUIET(migrate_pages, EPERM),
    QUIET(move_pages, EPERM),
    /* Huge pages come out of the operator's pool, and no memory limit counts them. */
    QUIET_IF(mmap, ENOMEM, BIT(3, MAP_HUGETLB)),
    QUIET_IF(memfd_create, ENOMEM, BIT(1, MFD_HUGETLB)),
    QUIET_IF(shmget, ENOMEM, BIT(2, SHM_HUGETLB)),
    QUIET_IF(madvise, EINVAL, IS(2, MADV_MERGEABLE)), /* equal pages of neighbours can be felt */
    /* Compiled filters come out of one pool for the whole machine (net.core.bpf_jit_limit): when it
     * is empty no new sandbox can load its own. EINVAL is a kernel without filters. */
    ON_THE_WAY_IF(seccomp, EINVAL, IS(0, SECCOMP_SET_MODE_FILTER)),
    QUIET_IF(prctl, EINVAL, IS(0, PR_SET_SECCOMP), IS(1, SECCOMP_MODE_FILTER)),
    QUIET_IF(setsockopt, EPERM, IS(1, SOL_SOCKET), IS(2, SO_ATTACH_FILTER)),
    QUIET_IF(setsockopt, EPERM, IS(1, SOL_SOCKET), IS(2, SO_ATTACH_REUSEPORT_CBPF)),
    QUIET_IF(setsockopt, ENOPROTOOPT, IS(1, SOL_TCP_), IS(2, TCP_ULP_)),
    /* Flow labels outlive their socket, and so the sandbox, in a namespace that is used again. */
    QUIET_IF(setsockopt, ENOPROTOOPT, IS(1, SOL_IPV6_), IS(2, IPV6_FLOWLABEL_MGR_)),
    /* Whoever drops the last reference to a lingering socket waits: that can be the server, which
     * was passed it, or the kernel's one worker that closes files for everybody. */
    QUIET_IF(setsockopt, 0, IS(1, SOL_SOCKET), IS(2, SO_LINGER)),
    QUIET_IF(prctl, EINVAL, IS(0, PR_SCHED_CORE)), /* idles the core's other hyperthread */
    QUIET_IF(prctl, EPERM, IS(0, PR_SET_MM)),

    /* Terminals, pipes, leases. TIOCSETD loads line disciplines onto any pty. */
    TELL_IF(ioctl, EPERM, "type into a terminal", "ioctl(TIOCSTI)", IS(1, TIOCSTI)),
    TELL_IF(ioctl, EPERM, "control the console", "ioctl(TIOCLINUX)", IS(1, TIOCLINUX)),
    TELL_IF(ioctl, EPERM, "change a terminal's line discipline", "ioctl(TIOCSETD)",
            IS(1, TIOCSETD)),
    TELL_IF(fcntl, EPERM, "resize a pipe", "fcntl(F_SETPIPE_SZ)", IS(1, F_SETPIPE_SZ)),
    QUIET_IF(fcntl, EPERM, IS(1, F_SETLEASE)),
    QUIET_IF(fcntl, EPERM, IS(1, F_SETDELEG_)),

    /* 1 keeps core dumps away from a piped core_pattern; 0 would not (see cores.h). */
    ON_THE_WAY_IF(setrlimit, 0, IS(0, RLIMIT_CORE)),

    /* The machine. */
    TELL(init_module, EPERM, "load a kernel module"),
    TELL(finit_module, EPERM, "load a kernel module"),
    TELL(delete_module, EPERM, "unload a kernel module"),
    TELL(kexec_load, EPERM, "load another kernel"),
    TELL(kexec_file_load, EPERM, "load another kernel"),
    TELL(reboot, EPERM, "reboot the machine"),
    TELL(swapon, EPERM, "add swap space"),
    TELL(swapoff, EPERM, "remove swap space"),
    TELL(settimeofday, EPERM, "set the clock"),
    TELL(clock_settime, EPERM, "set the clock"),
    QUIET(adjtimex, EPERM),
    QUIET(clock_adjtime, EPERM),
    TELL(sethostname, EPERM, "change the host name"),
    TELL(setdomainname, EPERM, "change the domain name"),
    TELL(acct, EPERM, "switch process accounting"),
    TELL(syslog, EPERM, "read the kernel's log"),
    QUIET(vhangup, EPERM),
    QUIET(nfsservctl, ENOSYS),
    QUIET(lookup_dcookie, ENOSYS),
#if defined __x86_64__
    TELL(inotify_init, ENOSYS, "watch files for changes"),
    TELL_IF(mknod, EPERM, "make a device node", "mknod(S_IFCHR)", {1, S_IFMT, S_IFCHR}),
    TELL_IF(mknod, EPERM, "make a device node", "mknod(S_IFBLK)", {1, S_IFMT, S_IFBLK}),
    TELL(iopl, EPERM, "use I/O ports"),
    TELL(ioperm, EPERM, "use I/O ports"),
    QUIET(modify_ldt, ENOSYS),
    QUIET(create_module, ENOSYS),
    QUIET(get_kernel_syms, ENOSYS),
    QUIET(query_module, ENOSYS),
    QUIET(_sysctl, ENOSYS),
    QUIET(uselib, ENOSYS),
    QUIET(ustat, ENOSYS),
    QUIET(sysfs, ENOSYS),
#endif

    FAMILY(AF_NETLINK, "kernel control (netlink)"),
    FAMILY(AF_PACKET, "packet capture"),
    FAMILY(AF_VSOCK, "virtual machine"),
    FAMILY(AF_ALG, "kernel cryptography"),
    FAMILY(AF_BLUETOOTH, "Bluetooth"),
    FAMILY(AF_CAN, "CAN bus"),
    FAMILY(AF_KEY, "IPsec key"),
    FAMILY(AF_XDP, "XDP"),
    FAMILY(AF_TIPC, "TIPC"),
    FAMILY(AF_RDS, "RDS"),
    WORDS_IF(socket, EPERM, "open a raw socket", "socket(AF_INET, SOCK_RAW)", IS(0, AF_INET),
             {1, SOCK_KIND, SOCK_RAW}),
    WORDS_IF(socket, EPERM, "open a raw socket", "socket(AF_INET6, SOCK_RAW)", IS(0, AF_INET6),
             {1, SOCK_KIND, SOCK_RAW}),
    WORDS_IF(socket, ESOCKTNOSUPPORT, "open a socket of an unusual type",
             "socket() of a type other than SOCK_STREAM and SOCK_DGRAM", IS(0, AF_INET)),
    WORDS_IF(socket, ESOCKTNOSUPPORT, "open a socket of an unusual type",
             "socket() of a type other than SOCK_STREAM and SOCK_DGRAM", IS(0, AF_INET6)),
    WORDS_IF(socket, EAFNOSUPPORT, "open a socket of an unusual family",
             "socket() of this address family", ALWAYS),
    WORDS_IF(socketpair, EAFNOSUPPORT, "open a pair of sockets of an unusual family",
             "socketpair() of a family other than AF_UNIX", ALWAYS),
};

#define RULES (sizeof rules / sizeof rules[0])

/* --- the prologue --- */

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* The low half: both architectures are little-endian. */
#define LOAD_ARG(n) LOAD(args[n])
#define LOAD_ARG_HIGH(n)                                                                           \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[n]) + 4)
#define IF_EQ(v, then, els)  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, v, then, els)
#define IF_GT(v, then, els)  BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, v, then, els)
#define ANSWER(action)       BPF_STMT(BPF_RET | BPF_K, action)
#define ANSWER_ERRNO(errnum) ANSWER(SECCOMP_RET_ERRNO | (errnum))

/* Entered with nothing loaded, left with the call's number loaded. */
static const struct sock_filter judge_number[] = {
    LOAD(nr),
    IF_GT(NR_LAST, 2, 0),
    IF_GT(GAP_LAST, 2, 0),
    IF_GT(GAP_FIRST - 1, 0, 1),
    ANSWER_ERRNO(ENOSYS),
};

/* One call's judgement; every path ends in an answer. */
static const struct sock_filter judge_socket[] = {
    LOAD_ARG(0),
    IF_EQ(AF_UNIX, 11, 0),
    IF_EQ(AF_INET, 1, 0),
    IF_EQ(AF_INET6, 0, 10),
    LOAD_ARG(1), /* plain ones are let, but noted: see seccomp_lets */
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SOCK_KIND),
    IF_EQ(SOCK_STREAM, 1, 0),
    IF_EQ(SOCK_DGRAM, 0, 6),
    LOAD_ARG(2), /* other protocols would load their kernel modules */
    IF_EQ(IPPROTO_IP, 4, 0),
    IF_EQ(IPPROTO_TCP, 3, 0),
    IF_EQ(IPPROTO_UDP, 2, 0),
    ANSWER_ERRNO(EPROTONOSUPPORT),
    ANSWER(SECCOMP_RET_ALLOW),
    ANSWER(SECCOMP_RET_USER_NOTIF),
};
static const struct sock_filter judge_socketpair[] = {
    LOAD_ARG(0),
    IF_EQ(AF_UNIX, 0, 1),
    ANSWER(SECCOMP_RET_ALLOW),
    ANSWER(SECCOMP_RET_USER_NOTIF),
};
static const struct sock_filter judge_personality[] = {
    LOAD_ARG(0),
    IF_EQ(0, 1, 0),
    IF_EQ(UINT32_MAX, 0, 1), /* a query */
    ANSWER(SECCOMP_RET_ALLOW),
    ANSWER_ERRNO(EPERM),
};
/* Oneself only, and RLIMIT_CORE only to ask: a new limit is answered as setrlimit is, in the table.
 */
static const struct sock_filter judge_prlimit64[] = {
    LOAD_ARG(0),
    IF_EQ(0, 0, 8),
    LOAD_ARG(1),
    IF_EQ(RLIMIT_CORE, 0, 4),
    LOAD_ARG(2),
    IF_EQ(0, 0, 3),
    LOAD_ARG_HIGH(2),
    IF_EQ(0, 0, 1),
    ANSWER(SECCOMP_RET_ALLOW),
    ANSWER_ERRNO(0),
    ANSWER_ERRNO(EPERM),
};

#define JUDGE(part, name)                                                                          \
    { part, SYS_##name, judge_##name, sizeof judge_##name / sizeof judge_##name[0] }
static const struct {
    enum seccomp_part part;
    unsigned nr;
    const struct sock_filter *code;
    uint8_t len;
} judges[] = {JUDGE(SECCOMP_LATE, socket), JUDGE(SECCOMP_LATE, socketpair),
              JUDGE(SECCOMP_EARLY, personality), JUDGE(SECCOMP_LATE, prlimit64)};

struct program {
    struct sock_filter code[BPF_MAXINSNS];
    size_t len;
};

/* What is prepended is far below BPF_MAXINSNS; only libseccomp's part has to be checked. */
static void program_add(struct program *p, const struct sock_filter *code, size_t n) {
    memcpy(p->code + p->len, code, n * sizeof *code);
    p->len += n;
}

static void add_prologue(struct program *p, enum seccomp_part part) {
    const struct sock_filter arch[] = {
        LOAD(arch),
        IF_EQ(seccomp_arch_native(), 1, 0),
        ANSWER_ERRNO(ENOSYS),
    };
    program_add(p, arch, sizeof arch / sizeof arch[0]);
    const struct sock_filter number = LOAD(nr);
    if (part == SECCOMP_EARLY)
        program_add(p, judge_number, sizeof judge_number / sizeof judge_number[0]);
    else
        program_add(p, &number, 1);
    for (size_t i = 0; i < sizeof judges / sizeof judges[0]; i++) {
        if (judges[i].part != part)
            continue;
        const struct sock_filter enter = IF_EQ(judges[i].nr, 0, judges[i].len);
        program_add(p, &enter, 1);
        program_add(p, judges[i].code, judges[i].len);
    }
}

/* --- the table through libseccomp --- */

static void ctx_done(scmp_filter_ctx *ctx) {
    if (*ctx)
        seccomp_release(*ctx);
}

static int add_rule(scmp_filter_ctx ctx, const struct rule *r, struct err *e) {
    struct scmp_arg_cmp cmp[2];
    unsigned n = 0;
    for (; n < 2 && r->when[n].mask; n++)
        cmp[n] = (struct scmp_arg_cmp){
            .arg = r->when[n].arg,
            .op = SCMP_CMP_MASKED_EQ,
            .datum_a = r->when[n].mask,
            .datum_b = r->when[n].value,
        };
    uint32_t action = r->op ? SCMP_ACT_NOTIFY : SCMP_ACT_ERRNO((uint32_t)r->errnum);
    int rc = seccomp_rule_add_exact_array(ctx, action, r->nr, n, cmp);
    return rc < 0 ? err_set(e, -rc, "%s: libseccomp takes no such rule", r->rule) : 0;
}

static enum seccomp_part part_of(const struct rule *r) {
    return r->op || r->on_the_way ? SECCOMP_LATE : SECCOMP_EARLY;
}

static int add_rules(scmp_filter_ctx ctx, enum seccomp_part part, struct err *e) {
    int rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
    if (rc == 0)
        rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* binary tree */
    if (rc < 0)
        return err_set(e, -rc, "libseccomp: cannot set attributes");
    for (size_t i = 0; i < RULES; i++)
        if (!rules[i].prologue && part_of(&rules[i]) == part && add_rule(ctx, &rules[i], e) < 0)
            return -1;
    return 0;
}

/* libseccomp writes to descriptors only. */
static int add_exported(struct program *p, scmp_filter_ctx ctx, struct err *e) {
    AUTO_FD fd = memfd_create("seccomp-export", MFD_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "memfd_create");
    int rc = seccomp_export_bpf(ctx, fd);
    if (rc < 0)
        return err_set(e, -rc, "libseccomp: export");
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(e, "fstat of the exported filter");
    size_t size = (size_t)st.st_size;
    if (size == 0 || size % sizeof p->code[0] || size / sizeof p->code[0] > BPF_MAXINSNS - p->len)
        return err_set(e, E2BIG, "libseccomp: exported filter of %zu bytes", size);
    if (pread(fd, p->code + p->len, size, 0) != (ssize_t)size)
        return err_set(e, EIO, "read of the exported filter");
    p->len += size / sizeof p->code[0];
    return 0;
}

int seccomp_compile(enum seccomp_part part, int *ret_fd, struct err *e) {
    struct program p = {.len = 0};
    __attribute__((cleanup(ctx_done))) scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    if (!ctx)
        return err_set(e, ENOMEM, "libseccomp: init");
    if (add_rules(ctx, part, e) < 0)
        return -1;
    add_prologue(&p, part);
    if (add_exported(&p, ctx, e) < 0)
        return -1;
    return memfd_of("seccomp", p.code, p.len * sizeof p.code[0], ret_fd, e);
}

/* --- words --- */

static bool rule_fits(const struct rule *r, int nr, const uint64_t args[6]) {
    if (r->nr != nr || !r->op)
        return false;
    for (size_t i = 0; i < 2; i++)
        if (((uint32_t)args[r->when[i].arg] & r->when[i].mask) != r->when[i].value)
            return false;
    return true;
}

bool seccomp_lets(int nr, const uint64_t args[6]) {
    uint32_t family = (uint32_t)args[0], kind = (uint32_t)args[1] & SOCK_KIND;
    uint32_t protocol = (uint32_t)args[2];
    if (nr != SYS_socket)
        return false;
    if (family == AF_NETLINK) /* libc lists the interfaces through it */
        return protocol == NETLINK_ROUTE;
    return (family == AF_INET || family == AF_INET6) &&
           (kind == SOCK_STREAM || kind == SOCK_DGRAM) &&
           (protocol == IPPROTO_IP || protocol == IPPROTO_TCP || protocol == IPPROTO_UDP);
}

const struct seccomp_refusal *seccomp_refusal(int nr, const uint64_t args[6],
                                              struct seccomp_refusal *scratch) {
    *scratch = (struct seccomp_refusal){
        .errnum = EPERM,
        .op = "make a system call",
        .detail = "this system call is not available inside a sandbox",
        .rule = "seccomp",
    };
    for (size_t i = 0; i < RULES; i++) {
        const struct rule *r = &rules[i];
        if (!rule_fits(r, nr, args))
            continue;
        *scratch = (struct seccomp_refusal){r->errnum, r->op, r->detail, r->rule};
        break;
    }
    return scratch;
}
