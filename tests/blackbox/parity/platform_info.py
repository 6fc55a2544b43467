import os
import platform
import sys

print(platform.system(), platform.python_version(), platform.python_implementation(), platform.machine())
print(platform.libc_ver(), platform.architecture(sys.executable)[0])
print(platform.freedesktop_os_release()["ID"])
print(os.path.exists("/dev/null"), open("/dev/zero", "rb").read(3), len(open("/dev/urandom", "rb").read(3)))
print(sorted(map(int, os.listdir("/dev/fd")))[:3], os.path.exists("/proc/self/exe"))
print(open("/proc/self/comm").read(), os.path.basename(os.readlink("/proc/self/exe")))
