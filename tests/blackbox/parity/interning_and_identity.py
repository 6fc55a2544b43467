a, b = 256, 256
print(a is b, "ab" is "a" + "b", () is (), None is None)
import sys

print(sys.getrefcount(None) > 100, id(a) == id(b), int.__subclasses__()[:1], type(type))
print(sorted(dir(__builtins__))[:5], len(dir(__builtins__)) > 150)
