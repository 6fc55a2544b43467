print(locals() is globals())
print(list(globals())[:9])
x = 5


def f():
    return x


print(f.__module__, f.__globals__ is globals(), f.__code__.co_filename)


class C:
    pass


print(C, C.__module__, C.__qualname__)
print(eval("x"), [x for _ in range(2)])
