import ctypes
import ctypes.util

libc = ctypes.CDLL(None, use_errno=True)
print(libc.abs(-5), libc.strlen(b"four"), ctypes.util.find_library("c"))
libc.open(b"/nonexistent", 0)
print(ctypes.get_errno())


class P(ctypes.Structure):
    _fields_ = [("x", ctypes.c_int), ("y", ctypes.c_double)]


print(ctypes.sizeof(P), bytes(P(1, 2.0)))
CMP = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
a = (ctypes.c_int * 4)(3, 1, 2, 0)
libc.qsort(a, 4, 4, CMP(lambda x, y: x[0] - y[0]))
print(list(a), ctypes.pythonapi.Py_IsInitialized())
