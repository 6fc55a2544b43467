import atexit
import sys

atexit.register(print, "last")
atexit.register(lambda: sys.exit(9))
atexit.register(print, "first")
sys.exit(2)
