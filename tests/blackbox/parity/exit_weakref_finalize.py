import weakref


class A:
    pass


a = A()
weakref.finalize(a, print, "finalized at exit")
b = A()
f = weakref.finalize(b, print, "finalized when dropped")
del b
print(f.alive)
