import sys

print(sys.path)
print(sys.path_hooks, [type(f).__name__ for f in sys.path_hooks])
print(sys.meta_path)
