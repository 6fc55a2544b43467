import sys

help(len)
print(sys.stdout.isatty())
