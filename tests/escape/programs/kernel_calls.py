"""System calls that would widen the attack surface or change the machine: an errno each, no hang.

#= setns: refused EPERM
#= unshare user: refused EPERM
#= clone user: refused EPERM
#= clone pid: refused EPERM
#= clone net: refused EPERM
#= clone3: refused ENOSYS
#= mount: refused EPERM
#= umount2: refused EPERM
#= pivot_root: refused EPERM
#= chroot: refused EPERM
#= fsopen: refused EPERM
#= fsmount: refused EPERM
#= open_tree: refused EPERM
#= move_mount: refused EPERM
#= mount_setattr: refused EPERM
#= statmount: refused ENOSYS
#= listmount: refused ENOSYS
#= bpf: refused EPERM
#= perf_event_open: refused EPERM
#= userfaultfd: refused ENOSYS
#= io_uring_setup: refused ENOSYS
#= keyctl: refused ENOSYS
#= add_key: refused ENOSYS
#= request_key: refused ENOSYS
#= memfd_secret: refused ENOSYS
#= name_to_handle_at: refused EPERM
#= open_by_handle_at: refused EPERM
#= fanotify_init: refused EPERM
#= inotify_init: refused ENOSYS
#= inotify_init1: refused ENOSYS
#= init_module: refused EPERM
#= finit_module: refused EPERM
#= kexec_load: refused EPERM
#= personality: refused EPERM
#= modify_ldt: refused ENOSYS
#= iopl: refused EPERM
#= ioperm: refused EPERM
#= quotactl: refused EPERM
#= swapon: refused EPERM
#= reboot: refused EPERM
#= settimeofday: refused EPERM
#= clock_settime: refused EPERM
#= adjtimex: refused EPERM
#= sethostname: refused EPERM
#= setdomainname: refused EPERM
#= acct: refused EPERM
#= syslog: refused EPERM
#= vhangup: refused EPERM
#= a filter of its own: refused EINVAL
#= huge pages: refused ENOMEM
#= huge memfd: refused ENOMEM
#= huge segment: refused ENOMEM
#= merged pages: refused EINVAL
#= merged pages of a whole process: refused EINVAL
#= move_pages: refused EPERM
#= a call of tomorrow: refused ENOSYS
#= a terminal of its own: refused EACCES
#= TIOCSTI on its own terminal: refused EPERM
#= a line discipline: refused EPERM
#= F_SETPIPE_SZ: refused EPERM
#= F_SETLEASE: refused EPERM
#= O_ASYNC: refused EPERM
#= FIOASYNC: refused EPERM
#= F_NOTIFY: refused EINVAL
#= O_DIRECT: refused EINVAL
#= O_DIRECT later: refused EINVAL
#= O_DIRECT where no filter looks: refused ENOSYS
#= reads that leave nothing in the cache: refused ENOTSUP
#= the times of /dev/null: refused EROFS
#= a time stamp for each packet: refused ENOPROTOOPT
#= a time stamp in nanoseconds: refused ENOPROTOOPT
#= time stamps of all kinds: refused ENOPROTOOPT
#= the last time stamp: refused ENOENT
#= an encapsulated socket: refused ENOPROTOOPT
#= a signed connection: refused ENOPROTOOPT
#= a multicast group: refused ENODEV
#= a multicast group of IPv6: refused ENODEV
#= AF_VSOCK: refused EAFNOSUPPORT
#= AF_ALG: refused EAFNOSUPPORT
#= AF_PACKET: refused EAFNOSUPPORT
#= AF_NETLINK audit: refused EAFNOSUPPORT
#= AF_KEY: refused EAFNOSUPPORT
#= AF_BLUETOOTH: refused EAFNOSUPPORT
#= a raw socket: refused EPERM
#= SCTP: refused EPROTONOSUPPORT
#= a new network link: refused EPERM
"""

import fcntl
import os
import socket
import struct

from attempt import NR, attempt, call

NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000

attempt("setns", call, "setns", os.open("/proc/self/ns/net", os.O_RDONLY), 0)
attempt("unshare user", call, "unshare", NEWUSER)
attempt("clone user", call, "clone", NEWUSER | 17, 0, 0, 0, 0)
attempt("clone pid", call, "clone", NEWPID | 17, 0, 0, 0, 0)
attempt("clone net", call, "clone", NEWNET | 17, 0, 0, 0, 0)
attempt("clone3", call, "clone3", struct.pack("=11Q", NEWUSER, *[0] * 10), 88)
attempt("mount", call, "mount", b"tmpfs", b"/tmp", b"tmpfs", 0, None)
attempt("umount2", call, "umount2", b"/proc", 2)
attempt("pivot_root", call, "pivot_root", b"/tmp", b"/tmp")
attempt("chroot", call, "chroot", b"/tmp")
attempt("fsopen", call, "fsopen", b"tmpfs", 0)
attempt("fsmount", call, "fsmount", 0, 0, 0)
attempt("open_tree", call, "open_tree", -100, b"/", 1)
attempt("move_mount", call, "move_mount", -100, b"/tmp", -100, b"/", 0)
attempt("mount_setattr", call, "mount_setattr", -100, b"/", 0, struct.pack("=4Q", 0, 1, 0, 0), 32)
attempt("statmount", call, "statmount", bytes(24), bytes(512), 512, 0)
attempt("listmount", call, "listmount", bytes(24), bytes(512), 64, 0)
attempt("bpf", call, "bpf", 0, bytes(128), 128)
attempt("perf_event_open", call, "perf_event_open", bytes(128), 0, -1, -1, 0)
attempt("userfaultfd", call, "userfaultfd", 1)
attempt("io_uring_setup", call, "io_uring_setup", 8, bytes(120))
attempt("keyctl", call, "keyctl", 0, -3, 1)
attempt("add_key", call, "add_key", b"user", b"x", b"y", 1, -3)
attempt("request_key", call, "request_key", b"user", b"x", None, -3)
attempt("memfd_secret", call, "memfd_secret", 0)
attempt("name_to_handle_at", call, "name_to_handle_at", -100, b"/usr", bytes(136), bytes(4), 0)
attempt("open_by_handle_at", call, "open_by_handle_at", 3, bytes(136), 0)
attempt("fanotify_init", call, "fanotify_init", 0, 0)
attempt("inotify_init", call, "inotify_init")
attempt("inotify_init1", call, "inotify_init1", 0)
attempt("init_module", call, "init_module", b"", 0, b"")
attempt("finit_module", call, "finit_module", 0, b"", 0)
attempt("kexec_load", call, "kexec_load", 0, 0, 0, 0)
attempt("personality", call, "personality", 0x0040000)
attempt("modify_ldt", call, "modify_ldt", 0, bytes(64), 64)
attempt("iopl", call, "iopl", 3)
attempt("ioperm", call, "ioperm", 0x80, 1, 1)
attempt("quotactl", call, "quotactl", 0x80000700, b"/dev/vda", 0, bytes(64))
attempt("swapon", call, "swapon", b"/workspace/x", 0)
attempt("reboot", call, "reboot", 0xFEE1DEAD, 672274793, 0x89ABCDEF, 0)
attempt("settimeofday", call, "settimeofday", struct.pack("=2q", 0, 0), None)
attempt("clock_settime", call, "clock_settime", 0, struct.pack("=2q", 0, 0))
attempt("adjtimex", call, "adjtimex", bytes(208))
attempt("sethostname", call, "sethostname", b"x", 1)
attempt("setdomainname", call, "setdomainname", b"x", 1)
attempt("acct", call, "acct", None)
attempt("syslog", call, "syslog", 3, bytes(64), 64)
attempt("vhangup", call, "vhangup")
attempt("a filter of its own", call, "seccomp", 1, 0, struct.pack("=HxxxxxxQ", 0, 0))
attempt("huge pages", call, "mmap", 0, 1 << 21, 3, 0x40022, -1, 0)
attempt("huge memfd", call, "memfd_create", b"x", 4)
attempt("huge segment", call, "shmget", 0, 1 << 21, 0o5600)
attempt("merged pages", call, "madvise", 0, 0, 12)
attempt("merged pages of a whole process", call, "prctl", 67, 1, 0, 0, 0)
attempt("move_pages", call, "move_pages", 1, 0, 0, 0, 0, 0)
NR["tomorrow"] = 600
attempt("a call of tomorrow", call, "tomorrow")
attempt("a terminal of its own", os.openpty)
attempt("TIOCSTI on its own terminal", fcntl.ioctl, 1, 0x5412, b"x")
attempt("a line discipline", fcntl.ioctl, 1, 0x5423, struct.pack("=i", 3))
attempt("F_SETPIPE_SZ", fcntl.fcntl, 1, 1031, 1 << 20)
with open("leased", "w") as file:
    attempt("F_SETLEASE", fcntl.fcntl, file, 1024, 1)
attempt("O_ASYNC", fcntl.fcntl, 1, fcntl.F_SETFL, os.O_ASYNC)
attempt("FIOASYNC", fcntl.ioctl, 1, 0x5452, struct.pack("=i", 1))
attempt("F_NOTIFY", fcntl.fcntl, os.open("/usr/bin", os.O_RDONLY), 1026, 1)
attempt("O_DIRECT", os.open, "/usr/bin/env", os.O_RDONLY | os.O_DIRECT)
library = os.open("/usr/bin/env", os.O_RDONLY)
attempt("O_DIRECT later", fcntl.fcntl, library, fcntl.F_SETFL, os.O_DIRECT)
how = struct.pack("=3Q", os.O_RDONLY | os.O_DIRECT, 0, 0)
attempt("O_DIRECT where no filter looks", call, "openat2", -100, b"/usr/bin/env", how, 24)
attempt("reads that leave nothing in the cache", os.preadv, library, [bytearray(16)], 0, 0x80)
attempt("the times of /dev/null", os.utime, "/dev/null")
datagrams, stream = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM), socket.socket()
attempt("a time stamp for each packet", datagrams.setsockopt, socket.SOL_SOCKET, 29, 1)
attempt("a time stamp in nanoseconds", datagrams.setsockopt, socket.SOL_SOCKET, 64, 1)
attempt("time stamps of all kinds", datagrams.setsockopt, socket.SOL_SOCKET, 37, 2)
attempt("the last time stamp", fcntl.ioctl, datagrams, 0x8906, bytes(16))
attempt("an encapsulated socket", datagrams.setsockopt, 17, 100, 2)
attempt("a signed connection", stream.setsockopt, 6, 14, bytes(216))
group = socket.inet_aton("239.1.2.3") + socket.inet_aton("127.0.0.1")
attempt("a multicast group", socket.socket(type=socket.SOCK_DGRAM).setsockopt, 0, 35, group)
group = socket.inet_pton(socket.AF_INET6, "ff05::1:3") + struct.pack("=i", 1)
attempt("a multicast group of IPv6", datagrams.setsockopt, 41, 20, group)
attempt("AF_VSOCK", socket.socket, socket.AF_VSOCK, socket.SOCK_STREAM)
attempt("AF_ALG", socket.socket, socket.AF_ALG, socket.SOCK_SEQPACKET)
attempt("AF_PACKET", socket.socket, socket.AF_PACKET, socket.SOCK_RAW)
attempt("AF_NETLINK audit", socket.socket, socket.AF_NETLINK, socket.SOCK_RAW, 9)
attempt("AF_KEY", socket.socket, 15, socket.SOCK_RAW, 2)
attempt("AF_BLUETOOTH", socket.socket, 31, socket.SOCK_RAW, 1)
attempt("a raw socket", socket.socket, socket.AF_INET, socket.SOCK_RAW, 1)
attempt("SCTP", socket.socket, socket.AF_INET, socket.SOCK_STREAM, 132)


def new_link():
    route = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    route.send(struct.pack("=IHHII", 32, 16, 0x605, 1, 0) + bytes(16))  # RTM_NEWLINK, create, ack
    code = struct.unpack_from("=i", route.recv(4096), 16)[0]
    if code < 0:
        raise OSError(-code, "netlink")


attempt("a new network link", new_link)
