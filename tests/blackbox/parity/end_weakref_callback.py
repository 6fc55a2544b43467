import weakref


def target():
    pass


kept = weakref.ref(target, lambda ref: print("gone"))
print("body done")
