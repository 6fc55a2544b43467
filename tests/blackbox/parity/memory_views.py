import array
import sys

a = array.array("d", range(5))
m = memoryview(a)
print(m.nbytes, m.format, m[1:3].tolist(), m.cast("B")[:3].tobytes())
b = bytearray(10)
memoryview(b)[2:4] = b"xy"
print(b, sys.getsizeof([]), sys.getsizeof({}), sys.getsizeof(1), sys.intern("a") is "a"[:1])
x = b"y" * (50 << 20)
print(len(x), sys.getrefcount(x))
