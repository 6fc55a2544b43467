"""One byte at a time.

#! output_bytes=1000
#? status=ok stdout_truncated=True limit_hit=output
"""

import os

for _ in range(100_000):
    os.write(1, b"x")
