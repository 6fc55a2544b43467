import os
import sys

with open("helper_of_mine.py", "w") as source:
    source.write(
        """
import os

file = os.fdopen(os.dup(1), "w")
file.write("written at the end\\n")


class Noisy:
    def __del__(self):
        print("del in a module")


kept = Noisy()
"""
    )
sys.path.insert(0, os.getcwd())
import helper_of_mine  # noqa: E402


class Noisy:
    def __del__(self):
        print("del")


kept = Noisy()
print("body done", helper_of_mine.__name__, flush=True)
