"""One line of a hundred megabytes.

#! output_bytes=10000
#? status=ok stdout_truncated=True limit_hit=output
"""

import os

for _ in range(100):
    os.write(1, b"x" * (1 << 20))
