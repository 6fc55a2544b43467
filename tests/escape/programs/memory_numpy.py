"""One huge array.

#! memory_mb=64 profile=data
#? status=memory_exceeded limit_hit=memory
"""

import numpy

print(numpy.ones(1 << 30, dtype=numpy.uint8).sum())
