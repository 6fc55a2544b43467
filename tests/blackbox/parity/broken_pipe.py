import os
import sys

r, w = os.pipe()
os.dup2(w, 1)
os.close(w)
os.close(r)
try:
    print("into nothing")
except BrokenPipeError as e:
    print("caught", e, file=sys.stderr)
