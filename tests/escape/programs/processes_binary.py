"""A program of its own, without Python or libc's help, is under the same confinement.

#= unshare: EPERM
#= mount: EPERM
#= ptrace: EPERM
#= io_uring: ENOSYS
#= kill init: EPERM
#= uid: 1000
#= vsock: EAFNOSUPPORT
#= write /usr: EROFS
#= i386: refused
"""

import os
import subprocess

os.chmod("static", 0o755)
print(subprocess.run(["./static"], capture_output=True, text=True).stdout, end="")
