import builtins

original = print
builtins.print = lambda *a, **k: original("patched", *a, **k)
print("x")
builtins.custom = 5
original(custom)
import sys

builtins.__import__
del builtins.print
try:
    print("gone")
except NameError as e:
    sys.stdout.write(f"{e}\n")
