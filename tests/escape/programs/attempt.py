"""What the hostile programs share. One line per attempt: `name: refused ERRNO`, or GOT THROUGH."""

import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

NR = dict(
    mmap=9,
    madvise=28,
    shmget=29,
    socket=41,
    clone=56,
    msync=26,
    ptrace=101,
    syslog=103,
    setuid=105,
    setgid=106,
    setgroups=116,
    capset=126,
    mknod=133,
    personality=135,
    vhangup=153,
    modify_ldt=154,
    pivot_root=155,
    adjtimex=159,
    setrlimit=160,
    chroot=161,
    acct=163,
    settimeofday=164,
    mount=165,
    umount2=166,
    swapon=167,
    reboot=169,
    sethostname=170,
    setdomainname=171,
    iopl=172,
    ioperm=173,
    init_module=175,
    quotactl=179,
    fadvise64=221,
    sched_setparam=142,
    sched_setscheduler=144,
    clock_settime=227,
    kexec_load=246,
    add_key=248,
    request_key=249,
    keyctl=250,
    ioprio_set=251,
    inotify_init=253,
    unshare=272,
    get_robust_list=274,
    move_pages=279,
    signalfd=282,
    timerfd_create=283,
    timerfd_settime=286,
    signalfd4=289,
    inotify_init1=294,
    perf_event_open=298,
    fanotify_init=300,
    prlimit64=302,
    name_to_handle_at=303,
    open_by_handle_at=304,
    setns=308,
    process_vm_readv=310,
    process_vm_writev=311,
    kcmp=312,
    finit_module=313,
    sched_setattr=314,
    seccomp=317,
    memfd_create=319,
    bpf=321,
    userfaultfd=323,
    pidfd_send_signal=424,
    io_uring_setup=425,
    open_tree=428,
    move_mount=429,
    fsopen=430,
    fsmount=432,
    pidfd_open=434,
    clone3=435,
    pidfd_getfd=438,
    process_madvise=440,
    mount_setattr=442,
    openat2=437,
    prctl=157,
    preadv2=327,
    memfd_secret=447,
    process_mrelease=448,
    setxattrat=463,
    statmount=457,
    listmount=458,
)


def call(name, *args):
    """A system call; OSError if it fails."""
    values = [
        a if isinstance(a, (bytes, ctypes.Array)) or a is None else ctypes.c_long(a) for a in args
    ]
    result = libc.syscall(ctypes.c_long(NR[name]), *values)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def attempt(name, function, *args):
    try:
        result = function(*args)
    except OSError as exc:
        print(f"{name}: refused {errno.errorcode.get(exc.errno, exc)}", flush=True)
    except ValueError as exc:  # what resource makes of an EPERM
        print(f"{name}: refused {exc}", flush=True)
    else:
        print(f"{name}: GOT THROUGH {result!r}", flush=True)


def pretend(name, function, *args):
    """What is answered as if it had been done."""
    function(*args)
    print(f"{name}: pretended", flush=True)


def says(name, value):
    print(f"{name}: {value}", flush=True)
