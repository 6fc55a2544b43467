import sys

args = open("/proc/self/cmdline", "rb").read().split(b"\0")
print(sys.argv, len(sys.orig_argv))
