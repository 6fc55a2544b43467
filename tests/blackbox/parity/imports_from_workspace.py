import importlib
import os
import sys

open("helper.py", "w").write("print('helper loaded as', __name__)\nVALUE = 1\n")
os.makedirs("pkg/sub")
open("pkg/__init__.py", "w").write("from . import sub\n")
open("pkg/sub/__init__.py", "w").write("from ..data import X\n")
open("pkg/data.py", "w").write("X = 7\n")
open("pkg/__main__.py", "w").write("print('pkg main', __name__, __package__)\n")
importlib.invalidate_caches()
import helper
import pkg.sub

print(helper.VALUE, pkg.sub.X, helper.__file__, helper.__spec__.cached)
open("helper.py", "w").write("VALUE = 22\n")
importlib.reload(helper)
print(helper.VALUE, sorted(os.listdir()), os.path.exists("__pycache__"))
sys.path.insert(0, "/nonexistent")
try:
    import does_not_exist
except ModuleNotFoundError as e:
    print(e, e.name)
import runpy

print(runpy.run_path("helper.py", run_name="ran")["VALUE"])
runpy.run_module("pkg", run_name="__main__", alter_sys=True)
