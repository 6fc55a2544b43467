import sys

sys.stdout, sys.stderr = sys.stderr, sys.stdout
print("to stderr")
print("to stdout", file=sys.stderr)
