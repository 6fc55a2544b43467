"""A full file system is the sandbox's own trouble. The argument is the place.

#! disk_mb=16
#= fill: refused ENOSPC
#= still there: True
#? status=ok limit_hit=disk
"""

import os
import sys

from attempt import attempt, says

place = sys.argv[1]


def fill():
    with open(os.path.join(place, "big"), "wb", 0) as file:
        while True:
            file.write(bytes(1 << 20))


attempt("fill", fill)
says("still there", os.path.getsize(os.path.join(place, "big")) <= 16 << 20)
