"""Memory without end.

#! memory_mb=64
#? status=memory_exceeded limit_hit=memory
"""

hoard = []
while True:
    hoard.append(bytearray(1 << 20))
