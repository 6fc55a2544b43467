"""The doc of the program."""
from __future__ import annotations

x: nope = 1
print(__doc__, __annotations__)


def f(a: also_nope):
    pass


print(f.__annotations__)
