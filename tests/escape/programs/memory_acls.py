"""ACLs of files are memory that nobody is charged for, so there are none; what keeps attributes when
it copies goes on without.

#= an ACL: refused ENOTSUP
#= one for new files: refused ENOTSUP
#= by its descriptor: refused ENOTSUP
#= of a link: refused ENOTSUP
#= by the newest call: refused ENOTSUP
#= an attribute of one's own: refused ENOTSUP
#= ACLs by ten thousand names: none
#= copies: 0o640 0o640 0o640
"""

import functools
import os
import shutil
import struct
import subprocess

from attempt import attempt, call

NOBODY = 0xFFFFFFFF
entries = [(1, 6, NOBODY), *[(2, 6, 1000)] * 8000, (4, 4, NOBODY), (16, 6, NOBODY), (32, 4, NOBODY)]
acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"

os.mkdir("d")
os.symlink("d", "l")
attempt("an ACL", os.setxattr, "d", ACCESS, acl)
attempt("one for new files", os.setxattr, "d", DEFAULT, acl)
attempt("by its descriptor", os.setxattr, os.open("d", os.O_RDONLY), DEFAULT, acl)
of_link = functools.partial(os.setxattr, follow_symlinks=False)
attempt("of a link", of_link, "l", "user.x", b"x")
arguments = bytes(16)
attempt("by the newest call", call, "setxattrat", -100, b"d", 0, b"user.x", arguments, 16)
attempt("an attribute of one's own", os.setxattr, "d", "user.x", b"x")

made = 0
for n in range(10_000):
    os.mkdir(f"d/{n}")
    try:
        os.setxattr(f"d/{n}", DEFAULT, acl)
        made += 1
    except OSError:
        pass
print("ACLs by ten thousand names:", made or "none")

with open("file", "w") as file:
    file.write("x")
os.chmod("file", 0o640)
shutil.copy2("file", "by-python")
subprocess.run(["cp", "-a", "file", "by-cp"], check=True)
subprocess.run(
    "tar --xattrs -cf - file | (mkdir t; tar --xattrs -xf - -C t)", shell=True, check=True
)
print("copies:", *(oct(os.stat(name).st_mode & 0o777) for name in ("by-python", "by-cp", "t/file")))
