"""Names that are not there leave their memory in the kernel.

#! memory_mb=64
#= asked: 20000
#? status=ok
"""

import os

from attempt import says

for k in range(20_000):
    os.access(f"/usr/{k}-{'x' * 200}", os.F_OK)
says("asked", 20_000)
