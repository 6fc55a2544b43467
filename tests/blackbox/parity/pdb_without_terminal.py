import sys

print("before")
breakpoint()
print("after")
