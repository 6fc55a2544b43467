import argparse

p = argparse.ArgumentParser()
p.add_argument("--number", type=int, default=3)
print(p.parse_args(), p.prog)
p.parse_args(["--number", "x"])
