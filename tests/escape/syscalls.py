"""Which system calls does a sandbox let through?

Runs inside a sandbox (x86_64) and prints a line `NR NAME RESULT` for every number from 0 to 600
and for some calls with telling arguments: RESULT is `allowed` or the errno of the refusal. The
output must be equal to syscalls.expected.

Each call is made in a child of its own, with arguments that make it harmless (-1 is no
descriptor, no address and no size; the exceptions are in ARGUMENTS) and such that the kernel's
own answer is another errno than a filter's wherever that is possible. A call that succeeds, fails
in another way, ends the child or blocks it has reached the kernel: allowed. Death by SIGSYS is a
filter that kills: `killed`. KERNEL_MAY_LACK names calls that are let through and that not every
kernel has: ENOSYS is its answer.
"""

import ctypes
import errno
import mmap
import os
import resource
import signal
import struct
from collections.abc import Callable, Iterator
from functools import partial

LAST = 600
REFUSALS = {errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT}

NAMES_FROM_0 = """
    read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction
    rt_sigprocmask rt_sigreturn ioctl pread64 pwrite64 readv writev access pipe select
    sched_yield mremap msync mincore madvise shmget shmat shmctl dup dup2 pause nanosleep
    getitimer alarm setitimer getpid sendfile socket connect accept sendto recvfrom sendmsg
    recvmsg shutdown bind listen getsockname getpeername socketpair setsockopt getsockopt clone
    fork vfork execve exit wait4 kill uname semget semop semctl shmdt msgget msgsnd msgrcv
    msgctl fcntl flock fsync fdatasync truncate ftruncate getdents getcwd chdir fchdir rename
    mkdir rmdir creat link unlink symlink readlink chmod fchmod chown fchown lchown umask
    gettimeofday getrlimit getrusage sysinfo times ptrace getuid syslog getgid setuid setgid
    geteuid getegid setpgid getppid getpgrp setsid setreuid setregid getgroups setgroups
    setresuid getresuid setresgid getresgid getpgid setfsuid setfsgid getsid capget capset
    rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend sigaltstack utime mknod uselib
    personality ustat statfs fstatfs sysfs getpriority setpriority sched_setparam sched_getparam
    sched_setscheduler sched_getscheduler sched_get_priority_max sched_get_priority_min
    sched_rr_get_interval mlock munlock mlockall munlockall vhangup modify_ldt pivot_root
    _sysctl prctl arch_prctl adjtimex setrlimit chroot sync acct settimeofday mount umount2
    swapon swapoff reboot sethostname setdomainname iopl ioperm create_module init_module
    delete_module get_kernel_syms query_module quotactl nfsservctl getpmsg putpmsg afs_syscall
    tuxcall security gettid readahead setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr
    listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr tkill time futex
    sched_setaffinity sched_getaffinity set_thread_area io_setup io_destroy io_getevents
    io_submit io_cancel get_thread_area lookup_dcookie epoll_create epoll_ctl_old epoll_wait_old
    remap_file_pages getdents64 set_tid_address restart_syscall semtimedop fadvise64
    timer_create timer_settime timer_gettime timer_getoverrun timer_delete clock_settime
    clock_gettime clock_getres clock_nanosleep exit_group epoll_wait epoll_ctl tgkill utimes
    vserver mbind set_mempolicy get_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive
    mq_notify mq_getsetattr kexec_load waitid add_key request_key keyctl ioprio_set ioprio_get
    inotify_init inotify_add_watch inotify_rm_watch migrate_pages openat mkdirat mknodat
    fchownat futimesat newfstatat unlinkat renameat linkat symlinkat readlinkat fchmodat
    faccessat pselect6 ppoll unshare set_robust_list get_robust_list splice tee sync_file_range
    vmsplice move_pages utimensat epoll_pwait signalfd timerfd_create eventfd fallocate
    timerfd_settime timerfd_gettime accept4 signalfd4 eventfd2 epoll_create1 dup3 pipe2
    inotify_init1 preadv pwritev rt_tgsigqueueinfo perf_event_open recvmmsg fanotify_init
    fanotify_mark prlimit64 name_to_handle_at open_by_handle_at clock_adjtime syncfs sendmmsg
    setns getcpu process_vm_readv process_vm_writev kcmp finit_module sched_setattr
    sched_getattr renameat2 seccomp getrandom memfd_create kexec_file_load bpf execveat
    userfaultfd membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc
    pkey_free statx io_pgetevents rseq uretprobe uprobe
""".split()
NAMES_FROM_424 = """
    pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount
    fsopen fsconfig fsmount fspick pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2
    process_madvise epoll_pwait2 mount_setattr quotactl_fd landlock_create_ruleset
    landlock_add_rule landlock_restrict_self memfd_secret process_mrelease futex_waitv
    set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack futex_wake futex_wait
    futex_requeue statmount listmount lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal
    setxattrat getxattrat listxattrat removexattrat open_tree_attr file_getattr file_setattr
""".split()

NAMES = dict(enumerate(NAMES_FROM_0)) | dict(enumerate(NAMES_FROM_424, 424))
NUMBERS = {name: nr for nr, name in NAMES.items()}

# Where -1 would be refused for its value, or would do something.
ARGUMENTS: dict[str, tuple[int, ...]] = {
    "clone": (0x10000,),  # CLONE_THREAD alone: EINVAL
    "exit": (0,),
    "exit_group": (0,),
    "futex": (1, 1),  # FUTEX_WAKE, misaligned: EINVAL
    "kill": (2**30, 0),  # nobody: ESRCH
    "msgget": (0x7FFFFFFF, 0),  # ENOENT
    "prlimit64": (0, -1),  # EINVAL
    "socket": (1, 99),  # AF_UNIX of no type: EINVAL
    "socketpair": (1, 99),
}

KERNEL_MAY_LACK = set(
    """
    uretprobe uprobe get_mempolicy landlock_add_rule landlock_restrict_self
    fchmodat2 map_shadow_stack mseal setxattrat getxattrat listxattrat removexattrat
    """.split()
)

AF_INET, AF_NETLINK = 2, 16
SOCK_STREAM, SOCK_RAW = 1, 3

# Calls that are judged by their arguments, and what is said of them.
TELLING: list[tuple[str, str, tuple[int, ...]]] = [
    ("clone", "NEWUSER", (0x10000000,)),
    ("clone", "NEWNS", (0x20000,)),
    ("clone", "NEWPID", (0x20000000,)),
    ("clone", "NEWNET", (0x40000000,)),
    ("clone", "NEWIPC", (0x8000000,)),
    ("clone", "NEWUTS", (0x4000000,)),
    ("clone", "NEWCGROUP", (0x2000000,)),
    ("clone", "NEWUSER+high-bits", (0xFF_10000000,)),
    ("clone", "PARENT", (0x8000 | signal.SIGCHLD,)),
    *(("socket", f"family-{family}", (family, SOCK_STREAM, 0)) for family in range(50)),
    ("socket", "family-17+high-bits", (0xFF_00000011, SOCK_RAW)),
    ("socket", "inet-raw", (AF_INET, SOCK_RAW, 255)),
    ("socket", "inet-sctp", (AF_INET, SOCK_STREAM, 132)),
    ("socket", "netlink-route", (AF_NETLINK, SOCK_RAW, 0)),
    ("socket", "netlink-netfilter", (AF_NETLINK, SOCK_RAW, 12)),
    ("personality", "query", (0xFFFFFFFF,)),
    ("personality", "no-randomize", (0x40000,)),
    ("prlimit64", "init", (1, 7, 0, 0)),
    ("fcntl", "F_SETPIPE_SZ", (-1, 1031, 1 << 20)),
    ("fcntl", "F_SETLEASE", (-1, 1024, 0)),
    ("fcntl", "F_SETFL-async", (-1, 4, 0o20000)),
    ("ioctl", "FIOASYNC", (-1, 0x5452)),
    ("ioctl", "TIOCSTI", (-1, 0x5412)),
    ("ioctl", "TIOCSTI+high-bits", (-1, 0xFF_00005412)),
    ("ioctl", "TIOCLINUX", (-1, 0x541C)),
    ("ioctl", "TIOCSETD", (-1, 0x5423)),
    ("mknod", "device", (-1, 0o20600, 0x103)),
    ("mknod", "fifo", (-1, 0o10600)),
    ("mknodat", "device", (-1, -1, 0o60600, 0x700)),
    ("sched_setaffinity", "init", (1, 8, -1)),
    ("setpriority", "init", (0, 1, 19)),
]

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
report = mmap.mmap(-1, mmap.PAGESIZE)  # shared with the children


def system_call(nr: int, args: tuple[int, ...]) -> int:
    """The errno, 0 for success."""
    full = (args + (-1,) * 6)[:6]
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(nr), *(ctypes.c_long(signed(a)) for a in full))
    return ctypes.get_errno() if result == -1 else 0


def signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def i386_call(nr: int) -> int:
    """push rbx; mov eax, nr; xor ebx, ebx; int 0x80; pop rbx; ret"""
    code = b"\x53\xb8" + struct.pack("<I", nr) + b"\x31\xdb\xcd\x80\x5b\xc3"
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    result: int = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    return -result if -4096 < result < 0 else 0


def in_child(call: Callable[[], int], patience: float) -> str:
    report[:4] = struct.pack("<i", -1)
    pid = os.fork()
    if pid == 0:
        # No child of this child, whichever way it is asked for: EAGAIN.
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        signal.setitimer(signal.ITIMER_REAL, patience)
        report[:4] = struct.pack("<i", call())
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSYS:
        return "killed"
    (code,) = struct.unpack("<i", report[:4])
    return errno.errorcode[code] if code in REFUSALS else "allowed"


def try_call(nr: int, args: tuple[int, ...] = (), patience: float = 10.0) -> str:
    return in_child(lambda: system_call(nr, args), patience)


def sweep() -> Iterator[tuple[int, str, str]]:
    for nr in range(LAST + 1):
        name = NAMES.get(nr, "-")
        answer = try_call(nr, ARGUMENTS.get(name, ()), 0.05 if name == "pause" else 10.0)
        if name in KERNEL_MAY_LACK and answer == "ENOSYS":
            answer = "allowed"
        yield nr, name, answer
    for name, what, args in TELLING:
        yield NUMBERS[name], f"{name}:{what}", try_call(NUMBERS[name], args)
    for nr in (0x40000000 + NUMBERS["getpid"], 0x40000000 + 512, 0x7FFFFFFF, -1):
        yield nr, "x32" if nr >> 30 == 1 else "-", try_call(nr)
    for call in (20, 21, 26, 120, 359):  # getpid, mount, ptrace, clone, socket of i386
        yield call, "i386", in_child(partial(i386_call, call), 10.0)


for number, label, result in sweep():
    print(number, label, result)
