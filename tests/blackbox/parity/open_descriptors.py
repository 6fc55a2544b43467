import os

before = sorted(int(fd) for fd in os.listdir("/proc/self/fd"))
print(before)
for fd in before[:3]:
    kind = os.readlink(f"/proc/self/fd/{fd}").split(":")[0]
    print(fd, kind)
print(os.open("/dev/null", os.O_RDONLY), os.dup(0))
