import mmap
import os

with open("m", "wb") as f:
    f.write(b"a" * 8192)
with open("m", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
    m[4096:4100] = b"here"
    m.flush()
    print(len(m), m.find(b"here"), m[:2])
print(open("m", "rb").read()[4096:4101])
anonymous = mmap.mmap(-1, 4096)
if os.fork() == 0:
    anonymous[:3] = b"kid"
    os._exit(0)
os.wait()
print(anonymous[:3])
fd = os.memfd_create("x")
os.write(fd, b"mem")
print(os.pread(fd, 3, 0))
