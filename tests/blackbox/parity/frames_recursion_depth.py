import sys


def depth(n=0):
    try:
        return depth(n + 1)
    except RecursionError:
        return n


print(sys.getrecursionlimit(), depth())
sys.setrecursionlimit(200)
print(depth())
