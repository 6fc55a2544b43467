import json
import math


def area(r, scale=[1]):
    def inner():
        return math.pi * r * scale[0]

    return inner


table = {"a": [1, 2, (3, {4, 5})], "f": frozenset([6])}
table["self"] = table
print(round(area(2)(), 3), json.dumps(table["a"][:2]), len(table))
