import os
import sys

sys.stdout = open(1, "w", closefd=False)
os.close(1)
sys.stdout.write("never arrives")
