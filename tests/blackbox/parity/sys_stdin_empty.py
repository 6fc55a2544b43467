import sys

print(repr(sys.stdin.read()), repr(sys.stdin.readline()), list(sys.stdin))
try:
    input("prompt> ")
except EOFError as e:
    print("EOF", e)
