import sys

sys.excepthook = lambda *a: 1 / 0
raise ValueError("original")
