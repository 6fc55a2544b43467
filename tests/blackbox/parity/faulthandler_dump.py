import faulthandler
import sys

print(faulthandler.is_enabled())
faulthandler.enable()
faulthandler.dump_traceback()


def f():
    faulthandler.dump_traceback(all_threads=False)


f()
