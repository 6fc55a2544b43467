/* See seccomp_rules.h. */

#include "sandbox/seccomp_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/epoll.h>
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
    NR_setxattrat = 463,
    NR_open_tree_attr = 467,
    NR_file_getattr = 468,
    NR_file_setattr = 469,
};

#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#endif
#ifndef SO_ATTACH_REUSEPORT_CBPF
#define SO_ATTACH_REUSEPORT_CBPF 51
#endif
#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#endif
/* Headers of libc and of the kernel that have these do not go together. */
enum { SOL_IP_ = 0, SOL_TCP_ = 6, SOL_UDP_ = 17, SOL_IPV6_ = 41, F_SETDELEG_ = 1040 };
enum { TCP_CONGESTION_ = 13, TCP_MD5SIG_ = 14, TCP_ULP_ = 31, TCP_NEWER_ = 32 };
enum { TCP_ZEROCOPY_RECEIVE_ = 35, SO_MAX_PACING_RATE_ = 47, SO_ZEROCOPY_ = 60 };
enum { UDP_ENCAP_ = 100, UDP_SEGMENT_ = 103, UDP_GRO_ = 104 };
enum { IP_RECVERR_ = 11, IPV6_RECVERR_ = 25, IPV6_FLOWLABEL_MGR_ = 32 };
enum { IP_ADD_MEMBERSHIP_ = 35, IP_ADD_SOURCE_MEMBERSHIP_ = 39, IP_MSFILTER_ = 41 };
enum { IPV6_JOIN_GROUP_ = 20, IPV6_JOIN_ANYCAST_ = 27 };
enum { MCAST_JOIN_GROUP_ = 42, MCAST_JOIN_SOURCE_GROUP_ = 46, MCAST_MSFILTER_ = 48 };
enum { RWF_DONTCACHE_ = 0x80 };
enum { PR_FUTEX_HASH_ = 78, F_SET_RW_HINT_ = 1036, F_SET_FILE_RW_HINT_ = 1038 };
enum { FS_IOC_GETFSUUID_ = (int)0x80111500, FS_IOC_GETFSSYSFSPATH_ = (int)0x80811501 };
enum { SIOCGSTAMP_NEW_ = (int)0x80108906, SIOCGSTAMPNS_NEW_ = (int)0x80108907 };

#define INT_BITS UINT32_MAX

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
#define SERVED_IF(name, ...)                                                                       \
    { .nr = SYS_##name, .when = {__VA_ARGS__}, .served = true, .rule = "seccomp:" #name }
#define OPTION(err, level, name) QUIET_IF(setsockopt, err, IS(1, level), IS(2, name))
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

#define POLICY(policy, err)                                                                        \
    QUIET_IF(sched_setscheduler, err, {1, ~(uint32_t)SCHED_RESET_ON_FORK, policy})
#define SIGN (1u << 31)

#define CLONE_NS(flag, what)                                                                       \
    TELL_IF(clone, EPERM, "make a new " what " namespace", "clone(" #flag ")", BIT(0, flag))
#define PTRACE(request, what) TELL_IF(ptrace, EPERM, what, "ptrace(" #request ")", IS(0, request))
#define FAMILY(family, what)                                                                       \
    WORDS_IF(socket, EAFNOSUPPORT, "open a " what " socket", "socket(" #family ")", IS(0, family))

/* The first row that fits gives the words, so special cases stand before the general one. */
const struct rule seccomp_rules[] = {
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
    /* An ACL of 64 KiB takes 128 KiB of the kernel's memory, for which nobody is charged, and each
     * directory can have two (seen: 525 MiB by a sandbox of 64 MB). Which attribute is set is in
     * memory; file systems without any say this. */
    QUIET(setxattr, EOPNOTSUPP),
    QUIET(lsetxattr, EOPNOTSUPP),
    QUIET(fsetxattr, EOPNOTSUPP),
    QUIET_NEW(setxattrat, EOPNOTSUPP),
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
    /* Reads around the page cache are the disk's work each time, and no limit sees them. What a
     * file system says that has no such reads; openat2 has its flags in memory. */
    QUIET_IF(openat, EINVAL, BIT(2, O_DIRECT)),
    QUIET_IF(fcntl, EINVAL, IS(1, F_SETFL), BIT(2, O_DIRECT)),
    QUIET_IF(preadv2, EOPNOTSUPP, BIT(5, RWF_DONTCACHE_)),
    QUIET(openat2, ENOSYS),
    /* Locks are charged to nobody, and one on a file that the host has too holds up the host and
     * tells a neighbour: init takes them, on the sandbox's own files (init/locks.c). */
    SERVED_IF(flock, ALWAYS),
    SERVED_IF(fcntl, IS(1, F_GETLK)),
    SERVED_IF(fcntl, IS(1, F_SETLK)),
    SERVED_IF(fcntl, IS(1, F_SETLKW)),
    SERVED_IF(fcntl, IS(1, F_OFD_GETLK)),
    SERVED_IF(fcntl, IS(1, F_OFD_SETLK)),
    SERVED_IF(fcntl, IS(1, F_OFD_SETLKW)),

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
    /* A process that is moved to and fro is moved by threads of the kernel's, a third of the time
     * on top of its own, and nobody is charged for that. Where it runs changes no result. */
    ON_THE_WAY_IF(sched_setaffinity, EPERM, IS(0, 1)),
    QUIET(sched_setaffinity, 0),
    /* There are no priorities in a sandbox. A lock that the host wants too may be handed to a
     * process that does not come to run, since all others of its sandbox run before it: seen with
     * half of 30 processes idle, the host waited 4 s for its network lock. */
    POLICY(SCHED_OTHER, 0),
    POLICY(SCHED_BATCH, 0),
    POLICY(SCHED_IDLE, 0),
    POLICY(SCHED_FIFO, EPERM),
    POLICY(SCHED_RR, EPERM),
    QUIET(sched_setparam, 0),
    QUIET(sched_setattr, EPERM), /* what it asks for is in memory */
    QUIET_IF(setpriority, EACCES, BIT(2, SIGN)),
    QUIET_IF(setpriority, 0, {2, SIGN, 0}),
    QUIET(ioprio_set, 0),

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
    SERVED_IF(memfd_create, ALWAYS),
    /* A byte of a page in a socket or a pipe holds the whole page, a huge one too, and is no more
     * than a byte to whoever counts; and of a file that the server wrote the pages are the
     * server's (seen: 2.5 GiB held by a sandbox of 320 MB). The errno of files that cannot be
     * spliced: programs copy instead. */
    QUIET(vmsplice, ENOSYS),
    QUIET(splice, EINVAL),
    QUIET(sendfile, EINVAL),
    /* Received pages that are mapped instead of copied are in no limit and no figure (seen: 7 GB
     * in a sandbox of 64 MB). What sends without copying is how they come to be whole pages. */
    QUIET_IF(getsockopt, ENOPROTOOPT, IS(1, SOL_TCP_), IS(2, TCP_ZEROCOPY_RECEIVE_)),
    OPTION(ENOPROTOOPT, SOL_SOCKET, SO_ZEROCOPY_),
    QUIET(landlock_create_ruleset, ENOSYS), /* its rules are no process's memory */
    QUIET_IF(shmget, ENOMEM, BIT(2, SHM_HUGETLB)),
    QUIET_IF(madvise, EINVAL, IS(2, MADV_MERGEABLE)), /* equal pages of neighbours can be felt */
    QUIET_IF(prctl, EINVAL, IS(0, PR_SET_MEMORY_MERGE)),
    /* A table of 1 GiB in one call that no process seems to have; and what nobody has judged yet.
     */
    QUIET_IF(prctl, EINVAL, IS(0, PR_FUTEX_HASH_)),
    QUIET_IF(prctl, EINVAL, IS(0, PR_FUTEX_HASH_ + 1)),
    QUIET_IF(prctl, EINVAL, {0, ~0xfu, 80}),
    QUIET_IF(prctl, EINVAL, {0, ~0x1fu, 96}),
    QUIET_IF(prctl, EINVAL, {0, ~0x7fu, 128}),
    /* Whoever wakes all that wait for a file does so with interrupts off. How many they are is
     * bounded in init/epolls.c. What a clock wakes, by itself or through signals, it wakes in an
     * interrupt, which is charged to nobody (seen: three quarters of a processor for a twentieth):
     * as kernels without such files answer. */
    SERVED_IF(epoll_create1, ALWAYS),
    SERVED_IF(epoll_ctl, IS(1, EPOLL_CTL_ADD)),
    QUIET(timerfd_create, ENOSYS),
    QUIET(timerfd_settime, ENOSYS),
    QUIET(timerfd_gettime, ENOSYS),
    ON_THE_WAY_IF(signalfd4, ENOSYS, ALWAYS), /* a zygote makes one */
    /* Compiled filters come out of one pool for the whole machine (net.core.bpf_jit_limit): when it
     * is empty no new sandbox can load its own. EINVAL is a kernel without filters. */
    ON_THE_WAY_IF(seccomp, EINVAL, IS(0, SECCOMP_SET_MODE_FILTER)),
    QUIET_IF(prctl, EINVAL, IS(0, PR_SET_SECCOMP), IS(1, SECCOMP_MODE_FILTER)),
    OPTION(EPERM, SOL_SOCKET, SO_ATTACH_FILTER),
    OPTION(EPERM, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF),
    OPTION(ENOPROTOOPT, SOL_TCP_, TCP_ULP_),
    /* Flow labels outlive their socket, and so the sandbox, in a namespace that is used again. */
    OPTION(ENOPROTOOPT, SOL_IPV6_, IPV6_FLOWLABEL_MGR_),
    /* Whoever drops the last reference to a lingering socket waits: that can be the server, which
     * was passed it, or the kernel's one worker that closes files for everybody. */
    OPTION(0, SOL_SOCKET, SO_LINGER),

    /* What a receive buffer holds besides datagrams (echoes of netlink, errors, time stamps) is
     * charged to nobody, so its size stays as it is: init/sockets.c. libc's resolver asks for
     * errors, and does without only if it thinks that it has them. */
    OPTION(0, SOL_SOCKET, SO_RCVBUF),
    OPTION(0, SOL_IP_, IP_RECVERR_),
    OPTION(0, SOL_IPV6_, IPV6_RECVERR_),
    SERVED_IF(setsockopt, IS(1, SOL_SOCKET), IS(2, SO_SNDBUF)),
    /* One datagram to a multicast or broadcast address goes to all sockets of its port, and cut
     * into segments 128 times, all in one interrupt: so there is one socket for each port
     * (init/sockets.c), and nothing is cut. */
    SERVED_IF(setsockopt, IS(1, SOL_SOCKET), IS(2, SO_REUSEADDR)),
    SERVED_IF(setsockopt, IS(1, SOL_SOCKET), IS(2, SO_REUSEPORT)),
    OPTION(ENOPROTOOPT, SOL_UDP_, UDP_SEGMENT_),
    SERVED_IF(accept, ALWAYS),
    SERVED_IF(accept4, ALWAYS),
    /* What leads out is asked for (init/network/ask.c). Data that goes with the SYN would be sent
     * before the question, to nobody: programs connect without it then. */
    SERVED_IF(connect, ALWAYS),
    QUIET_IF(sendto, EOPNOTSUPP, BIT(3, MSG_FASTOPEN)),
    QUIET_IF(sendmsg, EOPNOTSUPP, BIT(2, MSG_FASTOPEN)),
    QUIET_IF(sendmmsg, EOPNOTSUPP, BIT(3, MSG_FASTOPEN)),
    /* Each group costs memory that nobody is charged for, and is looked for in a list, under a lock
     * of the whole machine. Without a network there is nobody to hear. */
    OPTION(ENODEV, SOL_IP_, IP_ADD_MEMBERSHIP_),
    OPTION(ENODEV, SOL_IP_, IP_ADD_SOURCE_MEMBERSHIP_),
    OPTION(ENODEV, SOL_IP_, IP_MSFILTER_),
    OPTION(ENODEV, SOL_IP_, MCAST_JOIN_GROUP_),
    OPTION(ENODEV, SOL_IP_, MCAST_JOIN_SOURCE_GROUP_),
    OPTION(ENODEV, SOL_IP_, MCAST_MSFILTER_),
    OPTION(ENODEV, SOL_IPV6_, IPV6_JOIN_GROUP_),
    OPTION(ENODEV, SOL_IPV6_, IPV6_JOIN_ANYCAST_),
    OPTION(ENODEV, SOL_IPV6_, MCAST_JOIN_GROUP_),
    OPTION(ENODEV, SOL_IPV6_, MCAST_JOIN_SOURCE_GROUP_),
    OPTION(ENODEV, SOL_IPV6_, MCAST_MSFILTER_),
    /* The first user of each of these has the kernel's code rewritten, the last one again: every
     * processor is interrupted for it, and a worker of the kernel's does the second. */
    OPTION(ENOPROTOOPT, SOL_SOCKET, SO_TIMESTAMP_OLD),
    OPTION(ENOPROTOOPT, SOL_SOCKET, SO_TIMESTAMPNS_OLD),
    OPTION(ENOPROTOOPT, SOL_SOCKET, SO_TIMESTAMPING_OLD),
    OPTION(ENOPROTOOPT, SOL_SOCKET, SO_TIMESTAMP_NEW),
    OPTION(ENOPROTOOPT, SOL_SOCKET, SO_TIMESTAMPNS_NEW),
    OPTION(ENOPROTOOPT, SOL_SOCKET, SO_TIMESTAMPING_NEW),
    QUIET_IF(ioctl, ENOENT, IS(1, SIOCGSTAMP_OLD)),
    QUIET_IF(ioctl, ENOENT, IS(1, SIOCGSTAMPNS_OLD)),
    QUIET_IF(ioctl, ENOENT, IS(1, SIOCGSTAMP_NEW_)),
    QUIET_IF(ioctl, ENOENT, IS(1, SIOCGSTAMPNS_NEW_)),
    /* Questions about interfaces that take the machine's one network lock: init knows the answers,
     * or there are none (0x8940 to 0x89ff, ethtool among them). */
    SERVED_IF(ioctl, IS(1, SIOCGIFCONF)),
    SERVED_IF(ioctl, IS(1, SIOCGIFADDR)),
    SERVED_IF(ioctl, IS(1, SIOCGIFNETMASK)),
    QUIET_IF(ioctl, EADDRNOTAVAIL, IS(1, SIOCGIFDSTADDR)),
    QUIET_IF(ioctl, EADDRNOTAVAIL, IS(1, SIOCGIFBRDADDR)),
    QUIET_IF(ioctl, EOPNOTSUPP, {1, ~0x3fu, 0x8940}),
    QUIET_IF(ioctl, EOPNOTSUPP, {1, ~0x7fu, 0x8980}),
    /* What the host's file systems are called. */
    QUIET_IF(ioctl, ENOTTY, IS(1, FS_IOC_GETFSUUID_)),
    QUIET_IF(ioctl, ENOTTY, IS(1, FS_IOC_GETFSSYSFSPATH_)),
    OPTION(ENOPROTOOPT, SOL_UDP_, UDP_ENCAP_),
    OPTION(ENOPROTOOPT, SOL_UDP_, UDP_GRO_),
    OPTION(ENOPROTOOPT, SOL_TCP_, TCP_MD5SIG_),
    /* 32 to 63: keys of connections, a delay that changes the code of TCP for the whole machine,
     * timers that go off as often as one likes, and what nobody has judged yet. */
    QUIET_IF(setsockopt, ENOPROTOOPT, IS(1, SOL_TCP_), {2, ~0x1fu, TCP_NEWER_}),
    /* What was written in one go would be sent bit by bit, by a timer, and each bit wakes those who
     * wait for it: all that in interrupts, which nobody pays for. The pace is a hint; bbr, the
     * other who keeps one, is as if it was not there (see nursery/netpool.c). */
    OPTION(0, SOL_SOCKET, SO_MAX_PACING_RATE_),
    OPTION(ENOENT, SOL_TCP_, TCP_CONGESTION_),
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
    /* Whoever writes to a FIFO or a socket signals all that asked for it in one go, without a
     * pause: as many as there are open files, times the processes of a group. And closing them is
     * as much work for each: seen, a sandbox of 120 processes that took minutes to die. */
    QUIET_IF(fcntl, EPERM, IS(1, F_SETFL), BIT(2, O_ASYNC)),
    QUIET_IF(ioctl, EPERM, IS(1, FIOASYNC)),
    /* Kept with the file, a shared one too, and told to whoever asks. */
    QUIET_IF(fcntl, EINVAL, IS(1, F_SET_RW_HINT_)),
    QUIET_IF(fcntl, EINVAL, IS(1, F_SET_FILE_RW_HINT_)),

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
    SERVED_IF(sysinfo, ALWAYS),
    QUIET(vhangup, EPERM),
    QUIET(nfsservctl, ENOSYS),
    QUIET(lookup_dcookie, ENOSYS),
#if defined __x86_64__
    QUIET_IF(open, EINVAL, BIT(1, O_DIRECT)),
    SERVED_IF(epoll_create, ALWAYS),
    QUIET(signalfd, ENOSYS),
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

const size_t seccomp_nrules = sizeof seccomp_rules / sizeof seccomp_rules[0];

enum seccomp_part seccomp_part_of(const struct rule *r) {
    return r->op || r->served || r->on_the_way ? SECCOMP_LATE : SECCOMP_EARLY;
}
