"""Shared memory of every kind, with nobody to kill for it.

#! memory_mb=32 disk_mb=16
#? limit_hit=memory
"""

import mmap
import os

from attempt import call

hoard = []
call("shmget", 0, 16 << 20, 0o1600)
for k in range(100):
    fd = os.memfd_create(str(k))
    os.truncate(fd, 16 << 20)
    hoard.append(mmap.mmap(fd, 16 << 20))
    hoard[-1].write(b"x" * (16 << 20))
