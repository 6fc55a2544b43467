import pickle
from dataclasses import dataclass
from enum import Enum


@dataclass
class Point:
    x: int
    y: int


class Colour(Enum):
    RED = 1


data = pickle.dumps([Point(1, 2), Colour.RED, Point])
print(pickle.loads(data), b"__main__" in data)
try:
    pickle.dumps(lambda: 0)
except Exception as e:
    print(type(e).__name__, e)
