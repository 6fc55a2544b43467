import os
import sys

for k in range(3):
    print("text", k)
    sys.stdout.buffer.write(b"bytes %d\n" % k)
    os.write(1, b"direct %d\n" % k)
    print("err", k, file=sys.stderr)
print("no newline", end="")
