import sys


def steps():
    try:
        yield 1
    finally:
        print("closed")


kept = [steps()]
sys.other = (steps(),)
print(next(kept[0]), next(sys.other[0]))
