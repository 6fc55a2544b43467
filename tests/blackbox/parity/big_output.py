import sys

for k in range(2000):
    print(k, "x" * 50)
sys.stderr.write("e" * 100000 + "\n")
