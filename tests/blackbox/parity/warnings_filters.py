import sys
import warnings

for f in warnings.filters:
    print(f[0], f[1], f[2].__name__, f[3], f[4])
print(sys.warnoptions)
warnings.warn("once")
for _ in range(3):
    warnings.warn("in a loop")
