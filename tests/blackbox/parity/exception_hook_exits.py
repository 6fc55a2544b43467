# An exception hook decides about the exit status.
import atexit
import sys


def hook(kind, value, traceback):
    print("hook", kind.__name__)
    sys.exit(9)


atexit.register(print, "at exit")
sys.excepthook = hook
raise ValueError("not shown")
