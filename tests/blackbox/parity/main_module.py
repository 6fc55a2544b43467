import __main__
import sys

print(sorted(k for k in vars(__main__) if k != "sys"))
print(__name__, __file__, __spec__, __package__, __doc__, __cached__)
print(type(__builtins__), __builtins__ is sys.modules["builtins"])
print(type(__loader__), __loader__.name, __loader__.path)
print(sys.modules["__main__"] is __main__, __main__.__dict__ is globals())
print(repr(__main__), __annotations__)
