import sys

print("ü€")
try:
    print("\udc80")
except UnicodeEncodeError as e:
    print(e)
print("\udc80", file=sys.stderr)
sys.stdout.reconfigure(errors="backslashreplace")
print("\udc80")
