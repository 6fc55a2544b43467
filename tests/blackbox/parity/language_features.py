import contextlib
import enum
import types


class Meta(type):
    def __new__(cls, name, bases, ns, **kw):
        print("meta", name, list(ns), kw)
        return super().__new__(cls, name, bases, ns)


class A(metaclass=Meta, opt=1):
    x: int = 0

    def __init_subclass__(cls, **kw):
        print("subclass", cls.__name__, kw)

    def __set_name__(self, owner, name):
        pass


class B(A, opt=2):
    pass


class F(enum.Flag):
    A = enum.auto()
    B = enum.auto()


@contextlib.contextmanager
def ctx():
    print("enter")
    try:
        yield 1
    except ValueError as e:
        print("swallowed", e)


with ctx():
    raise ValueError("v")
print(F.A | F.B, B.__mro__, types.SimpleNamespace(a=1))
try:
    raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
except* ValueError as eg:
    print("values", eg.exceptions)
except* KeyError as eg:
    print("keys", eg.exceptions)
print((lambda *a, k=1, **kw: (a, k, kw))(1, 2, z=3), [*range(3), *"ab"], {**{"a": 1}, "b": 2})
print(f"{(y := 5)=}", 1 < 2 < 3, not 0, 5 & 3, ~5)
