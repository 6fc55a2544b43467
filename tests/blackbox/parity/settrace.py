import sys

events = []


def tracer(frame, event, arg):
    if frame.f_code.co_name == "f":
        events.append((event, frame.f_lineno))
    return tracer


def f():
    x = 1
    return x


sys.settrace(tracer)
f()
sys.settrace(None)
print(events)
sys.addaudithook(lambda name, args: print("audit", name, args) if name == "custom" else None)
sys.audit("custom", 1)
