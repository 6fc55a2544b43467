import sys


def hook(kind, value, tb):
    print("hooked", kind.__name__, value, tb.tb_lineno)


sys.excepthook = hook
raise ValueError("x")
