import sys


class Bare:  # the collector does not know of those
    __slots__ = ()

    def __del__(self):
        print("del")


sys.kept = {"bare": Bare()}
del Bare
print("body done")
