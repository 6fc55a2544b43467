"""Names that are not there leave their memory in the kernel.

#! memory_mb=128
#= asked: 100000
#? status=ok
"""

import os

from attempt import says

mine = os.urandom(8).hex()  # the kernel knows those of an earlier run
for k in range(100_000):
    os.access(f"/usr/{mine}-{k}-{'x' * 200}", os.F_OK)
says("asked", 100_000)
