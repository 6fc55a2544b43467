import os
import sys

sys.kept = [os.fdopen(os.dup(1), "w")]
sys.kept[0].write("written at the end\n")
print("body done", flush=True)
