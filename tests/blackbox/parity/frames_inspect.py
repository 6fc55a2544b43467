import inspect
import sys

for frame in inspect.stack():
    print(frame.filename, frame.lineno, frame.function, frame.code_context)


def f():
    return len(inspect.stack()), sys._getframe().f_back.f_code.co_name


print(f())
print(sys._getframe().f_back)
try:
    sys._getframe(1)
except ValueError as e:
    print(e)
print(inspect.currentframe().f_globals is globals(), inspect.getmodule(f).__name__)
print(inspect.getsource(f))
