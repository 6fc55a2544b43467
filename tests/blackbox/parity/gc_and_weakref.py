import gc
import weakref

print(gc.isenabled(), gc.get_threshold(), gc.get_debug(), gc.garbage, gc.callbacks)


class Node:
    def __init__(self):
        self.me = self

    def __del__(self):
        print("collected")


n = Node()
r = weakref.ref(n, lambda _: print("weakref callback"))
del n
print(r() is not None)
gc.collect()
print(r())
d = weakref.WeakValueDictionary(a=Node())
gc.collect()
print(dict(d))
print(gc.is_tracked([]), gc.is_tracked(1), len(gc.get_stats()))
