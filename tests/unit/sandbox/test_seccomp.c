/* What the filter decides on every call that matters, as an interpreter of our own sees it. */

#include "seccomp_fixture.h"

#include "sandbox/seccomp_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cmocka.h>

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
    {"own affinity", SYS_sched_setaffinity, {0}, ERR(0)},
    {"init's affinity", SYS_sched_setaffinity, {HIGH | 1}, ERR(EPERM)},
    {"own priority", SYS_setpriority, {0, 0, 5}, ERR(0)},
    {"init's priority", SYS_setpriority, {0, 1, 19}, ERR(0)},
    {"a higher priority", SYS_setpriority, {0, 0, (uint32_t)-5}, ERR(EACCES)},
    {"an idle process", SYS_sched_setscheduler, {0, SCHED_IDLE}, ERR(0)},
    {"the same for itself only", SYS_sched_setscheduler, {0, SCHED_IDLE | 0x40000000}, ERR(0)},
    {"real time", SYS_sched_setscheduler, {0, SCHED_FIFO}, ERR(EPERM)},
    {"scheduler attributes", SYS_sched_setattr, {0}, ERR(EPERM)},
    {"an epoll descriptor", SYS_epoll_create1, {0}, NOTE},
    {"one more watch", SYS_epoll_ctl, {3, HIGH | EPOLL_CTL_ADD}, NOTE},
    {"one watch less", SYS_epoll_ctl, {3, EPOLL_CTL_DEL}, ALLOW},
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
    {"a socket option", SYS_setsockopt, {3, SOL_SOCKET, SO_KEEPALIVE}, ALLOW},
    {"an address that others have", SYS_setsockopt, {3, SOL_SOCKET, SO_REUSEADDR}, NOTE},
    {"a port that others have", SYS_setsockopt, {3, SOL_SOCKET, SO_REUSEPORT}, NOTE},
    {"datagrams in segments", SYS_setsockopt, {3, 17, 103}, ERR(ENOPROTOOPT)},
    {"a socket filter", SYS_setsockopt, {3, SOL_SOCKET, SO_ATTACH_FILTER}, ERR(EPERM)},
    {"received pages mapped", SYS_getsockopt, {3, 6, 35}, ERR(ENOPROTOOPT)},
    {"pages sent as they are", SYS_setsockopt, {3, SOL_SOCKET, 60}, ERR(ENOPROTOOPT)},
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
    {"answers at once", SYS_setsockopt, {3, 6, 12}, ALLOW},
    {"another way to send", SYS_setsockopt, {3, 6, 13}, ERR(ENOENT)},
    {"a delay of all that is sent", SYS_setsockopt, {3, 6, 37}, ERR(ENOPROTOOPT)},
    {"an option of the future", SYS_setsockopt, {3, 6, 63}, ERR(ENOPROTOOPT)},
    {"a pace", SYS_setsockopt, {3, SOL_SOCKET, HIGH | 47}, ERR(0)},
    {"a timer's file", SYS_timerfd_create, {0}, ERR(ENOSYS)},
    {"signals' file", SYS_signalfd4, {0}, ERR(ENOSYS)},
    {"an attribute", SYS_setxattr, {0}, ERR(EOPNOTSUPP)},
    {"an attribute, newer", 463, {0}, ERR(EOPNOTSUPP)},
    {"reading an attribute", SYS_getxattr, {0}, ALLOW},
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
        uint32_t answer = filter_judge(&data);
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
            uint32_t answer = filter_judge(&data);
            if (answer != TELL && answer != ERR(EPERM) && answer != ERR(ENOSYS))
                fail_msg("call %d: %#x", data.nr, answer);
        }
}

static void test_unknown_numbers_do_not_exist(void **state) {
    (void)state;
    struct seccomp_data data = {.arch = NATIVE};
    for (data.nr = 470; data.nr < 5000; data.nr++)
        assert_int_equal(filter_judge(&data), ERR(ENOSYS));
    for (data.nr = 337; data.nr < 424; data.nr++)
        assert_int_equal(filter_judge(&data), ERR(ENOSYS));
    const int far[] = {0x7fffffff, -1, -2, 0x40000000, (int)0x80000000};
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        data.nr = far[i];
        assert_int_equal(filter_judge(&data), ERR(ENOSYS));
    }
}

static void test_foreign_abis_do_not_exist(void **state) {
    (void)state;
    const uint32_t archs[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_S390X, 0};
    for (int nr = 0; nr < 600; nr++) {
        for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++)
            assert_int_equal(filter_judge(&(struct seccomp_data){.nr = nr, .arch = archs[i]}),
                             ERR(ENOSYS));
        const struct seccomp_data x32 = {.nr = nr | 0x40000000, .arch = NATIVE};
        assert_int_equal(filter_judge(&x32), ERR(ENOSYS));
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

/* Values at which a condition of the call may change its mind. */
static size_t values_for(int nr, unsigned arg, uint64_t out[256]) {
    size_t n = 0;
    out[n++] = 0;
    out[n++] = UINT64_MAX;
    for (size_t i = 0; i < seccomp_nrules; i++) {
        const struct condition *c = seccomp_rules[i].when;
        for (int k = 0; k < 2 && n + 5 <= 256; k++) {
            if (seccomp_rules[i].nr != nr || !c[k].mask || c[k].arg != arg)
                continue;
            out[n++] = c[k].value;
            out[n++] = HIGH | c[k].value;
            out[n++] = c[k].value ^ 1;
            out[n++] = c[k].value | ~(uint64_t)c[k].mask;
            out[n++] = (uint64_t)c[k].value << 1;
        }
    }
    return n;
}

static bool all_hold(const struct condition c[2], const uint64_t args[6]) {
    for (int k = 0; k < 2; k++)
        if (c[k].mask && ((uint32_t)args[c[k].arg] & c[k].mask) != c[k].value)
            return false;
    return true;
}

/* What the rows of the late part say, looked up row by row. */
static uint32_t late_rows_say(int nr, const uint64_t args[6]) {
    for (size_t i = 0; i < seccomp_nrules; i++) {
        const struct rule *r = &seccomp_rules[i];
        if (r->nr == nr && !r->prologue && seccomp_part_of(r) == SECCOMP_LATE &&
            all_hold(r->when, args))
            return r->op || r->served ? TELL : ERR((uint32_t)r->errnum);
    }
    return ALLOW;
}

static bool is_refused_early(int nr) {
    const struct seccomp_data data = {.nr = nr, .arch = NATIVE};
    bool is = filter_judge_part(SECCOMP_EARLY, &data) != ALLOW;
    for (size_t i = 0; i < seccomp_nrules; i++)
        is = is && (seccomp_rules[i].nr != nr || !seccomp_rules[i].when[0].mask);
    return is;
}

static void check_late(int nr, unsigned first, unsigned second) {
    uint64_t one[256], two[256];
    size_t n = values_for(nr, first, one), m = values_for(nr, second, two);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < m; k++) {
            struct seccomp_data data = {.nr = nr, .arch = NATIVE};
            data.args[first] = one[i];
            data.args[second] = two[k];
            uint64_t args[6];
            for (int a = 0; a < 6; a++)
                args[a] = data.args[a];
            uint32_t says = filter_judge_part(SECCOMP_LATE, &data);
            if (says != late_rows_say(nr, args))
                fail_msg("call %d with %#lx and %#lx: %#x", nr, (long)one[i], (long)two[k], says);
        }
    }
}

/* The late part is a program of our own: every call, at every value that may matter. */
static void test_the_late_part_says_what_its_rows_say(void **state) {
    (void)state;
    for (int nr = 0; nr <= NR_LAST; nr++) {
        bool judged = nr == SYS_socket || nr == SYS_socketpair || nr == SYS_prlimit64;
        if (judged || is_refused_early(nr))
            continue;
        for (unsigned first = 0; first < 6; first++)
            for (unsigned second = first + 1; second < 6; second++)
                check_late(nr, first, second);
    }
}

/* Each instruction of it costs every kernel its time: see seccomp_late.c. */
static void test_the_late_part_is_short(void **state) {
    (void)state;
    assert_in_range(filter_bytes[SECCOMP_LATE] / sizeof filter[0][0], 50, 160);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decisions),
        cmocka_unit_test(test_refused_whatever_the_arguments),
        cmocka_unit_test(test_unknown_numbers_do_not_exist),
        cmocka_unit_test(test_foreign_abis_do_not_exist),
        cmocka_unit_test(test_nothing_kills),
        cmocka_unit_test(test_the_late_part_says_what_its_rows_say),
        cmocka_unit_test(test_the_late_part_is_short),
    };
    return cmocka_run_group_tests(tests, filter_compile, NULL);
}
