import ctypes

CB = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)


def callback(x):
    raise ValueError(f"in a callback {x}")


CB(callback)(3)
print("goes on")
