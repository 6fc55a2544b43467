"""Who it is, and that no call makes it more.

#= NoNewPrivs: 1
#= Seccomp: 2
#= CapInh: 0000000000000000
#= CapPrm: 0000000000000000
#= CapEff: 0000000000000000
#= CapBnd: 0000000000000000
#= CapAmb: 0000000000000000
#= ids: (1000, 1000, 1000) (1000, 1000, 1000) []
#= setuid: refused EINVAL|EPERM
#= setgid: refused EINVAL|EPERM
#= setgroups: refused EPERM
#= capset: refused EPERM
#= another id map: refused EROFS|EPERM|EACCES
#= no longer without privileges: refused EINVAL
#= a program that is set-user-id: 1000
"""

import os
import struct
import subprocess

from attempt import attempt, call, libc, says

status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines())
for name in ("NoNewPrivs", "Seccomp", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    says(name, status[name])
print("ids:", os.getresuid(), os.getresgid(), [g for g in os.getgroups() if g != 1000])
attempt("setuid", call, "setuid", 0)
attempt("setgid", call, "setgid", 0)
attempt("setgroups", os.setgroups, [0])
attempt(
    "capset",
    call,
    "capset",
    struct.pack("=Ii", 0x20080522, 0),
    struct.pack("=6I", *[0xFFFFFFFF] * 6),
)
attempt("another id map", lambda: open("/proc/self/uid_map", "w").write("0 0 1"))


def grow():
    if libc.prctl(38, 0, 0, 0, 0) < 0:
        raise OSError(22, "prctl")


attempt("no longer without privileges", grow)
os.mkdir("b")
subprocess.run("cp /usr/bin/id b/id && chmod 6755 b/id", shell=True, check=True)
says(
    "a program that is set-user-id",
    subprocess.run(["b/id", "-u"], capture_output=True, text=True).stdout.strip(),
)
