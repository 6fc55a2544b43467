"""The interpreter's libraries and our own files cannot be changed, not even their page cache.

#= append to a library: refused EROFS|EACCES
#= truncate a library: refused EROFS|EACCES
#= remove a library: refused EROFS|EACCES
#= rename a library: refused EROFS|EACCES|EXDEV
#= link a library: refused EROFS|EACCES|EXDEV|EPERM
#= chmod a library: refused EROFS|EACCES
#= touch a library: refused EROFS|EACCES
#= an attribute: refused ENOTSUP
#= write through a mapping: refused EACCES
#= a file beside it: refused EROFS|EACCES
#= our own module: refused EROFS|EACCES
#= our own package: refused EROFS|EACCES
#= the root: refused EROFS|EACCES
#= /etc: refused EROFS|EACCES
#= /dev: refused EROFS|EACCES
#= the program of the interpreter: refused EROFS|EACCES|ETXTBSY
"""

import mmap
import os

from attempt import attempt

path = os.__file__
attempt("append to a library", open, path, "a")
attempt("truncate a library", os.truncate, path, 0)
attempt("remove a library", os.remove, path)
attempt("rename a library", os.rename, path, "/workspace/os.py")
attempt("link a library", os.link, path, "/workspace/os_link.py")
attempt("chmod a library", os.chmod, path, 0o777)
attempt("touch a library", os.utime, path)
attempt("an attribute", os.setxattr, path, "user.x", b"y")
with open(path, "rb") as file:
    attempt(
        "write through a mapping", mmap.mmap, file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_WRITE
    )
attempt("a file beside it", open, os.path.dirname(path) + "/sitecustomize.py", "w")
attempt("our own module", open, "/run/cloche/cloche_zygote.abi3.so", "r+")
attempt("our own package", open, "/run/cloche/cell/oneshot.py", "a")
attempt("the root", os.mkdir, "/new")
attempt("/etc", open, "/etc/passwd", "a")
attempt("/dev", open, "/dev/new", "w")
attempt("the program of the interpreter", open, "/proc/self/exe", "r+")
