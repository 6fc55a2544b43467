"""Reading far more than its memory is no offence: the page cache gives way.

#! memory_mb=32
#= read: more than its memory
#? status=ok limit_hit=None
"""

import os

from attempt import says

total = 0
for directory, _, names in os.walk("/usr/lib"):
    for name in names:
        path = os.path.join(directory, name)
        if total > 200 << 20:
            break
        if not os.path.islink(path) and os.access(path, os.R_OK):
            with open(path, "rb", 0) as file:
                while chunk := file.read(1 << 20):
                    total += len(chunk)
says("read", "more than its memory" if total > 40 << 20 else total)
