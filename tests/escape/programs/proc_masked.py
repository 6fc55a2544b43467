"""/proc, /sys and /dev: what concerns the machine is masked, read-only or not there. The arguments
are words of the host that may not show.

#= kcore: nothing
#= kmsg: nothing
#= kallsyms: nothing
#= keys: nothing
#= key-users: nothing
#= timer_list: nothing
#= cmdline: nothing
#= modules: nothing
#= write sysrq-trigger: refused EROFS|EACCES|ENOENT
#= write sys/kernel/core_pattern: refused EROFS|EACCES|ENOENT
#= write sys/kernel/hostname: refused EROFS|EACCES|ENOENT
#= write sys/vm/drop_caches: refused EROFS|EACCES|ENOENT
#= write sys/net/ipv4/ip_forward: refused EROFS|EACCES|ENOENT
#= write self/oom_score_adj: refused EROFS
#= write self/mem: refused EROFS
#= /sys: []
#= cgroup: all at the root
#= words of the host in mountinfo, cgroup, cmdline, environ, maps, net/unix: []
#= a device: refused EPERM
#= a device with mknodat: refused EPERM
#= devices: full null ptmx random tty urandom zero
#= write to a disk: refused ENOENT
#= console: refused ENXIO|ENOTTY|EPERM
#= entropy: refused EPERM
#= reopen the control socket: refused ENXIO
"""

import fcntl
import os
import re
import stat
import sys

from attempt import attempt, call, says


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read(4096)
    except OSError:
        return b""


for name in ("kcore", "kmsg", "kallsyms", "keys", "key-users", "timer_list", "cmdline", "modules"):
    says(name, "nothing" if read(f"/proc/{name}") == b"" else "SHOWS")
for name in (
    "sysrq-trigger",
    "sys/kernel/core_pattern",
    "sys/kernel/hostname",
    "sys/vm/drop_caches",
    "sys/net/ipv4/ip_forward",
    "self/oom_score_adj",
    "self/mem",
):
    attempt(f"write {name}", os.open, f"/proc/{name}", os.O_WRONLY)
says("/sys", os.listdir("/sys"))
lines = read("/proc/self/cgroup").decode().splitlines()
says("cgroup", "all at the root" if all(line.endswith(":/") for line in lines) else lines)
found = []
for name in ("mountinfo", "cgroup", "cmdline", "environ", "maps", "net/unix"):
    text = open(f"/proc/self/{name}", "rb").read()
    # As a word: a machine may be called "vm", and there is a vmstat.
    whole = [rb"\b" + re.escape(word.encode()) + rb"\b" for word in sys.argv[1:]]
    found += [(name, word) for word in whole if re.search(word, text)]
says("words of the host in mountinfo, cgroup, cmdline, environ, maps, net/unix", found)
attempt("a device", os.mknod, "disk", stat.S_IFBLK | 0o600, os.makedev(254, 0))
attempt("a device with mknodat", os.mknod, "mem", stat.S_IFCHR | 0o600, os.makedev(1, 1))
nodes = [
    n
    for n in os.listdir("/dev")
    if stat.S_ISCHR(os.stat(f"/dev/{n}", follow_symlinks=n == "ptmx").st_mode)
]
says("devices", " ".join(sorted(nodes)))
attempt("write to a disk", os.open, "/dev/vda", os.O_RDWR)
attempt("console", lambda: fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), 0x541D))
attempt("entropy", fcntl.ioctl, os.open("/dev/random", os.O_RDWR), 0x40085203, bytes(16))
attempt("reopen the control socket", os.open, "/proc/self/fd/1000", os.O_RDWR)
