import gc
import sys
import warnings

warnings.simplefilter("always")


async def coro():
    pass


coro()
f = open(__file__)
del f
gc.collect()
print("done")
