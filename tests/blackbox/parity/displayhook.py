import builtins
import sys

sys.displayhook([1])
print(builtins._)
eval(compile("'single mode'", "<s>", "single"))
sys.displayhook = lambda v: print("hook", v)
eval(compile("5", "<s>", "single"))
