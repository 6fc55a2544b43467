import importlib
import sys
import warnings

warnings.simplefilter("ignore")
skip = {"antigravity", "this", "idlelib", "__main__"}
failed = []
for name in sorted(sys.stdlib_module_names - skip):
    try:
        importlib.import_module(name)
    except ImportError as e:
        failed.append((name, str(e)))
print(failed)
