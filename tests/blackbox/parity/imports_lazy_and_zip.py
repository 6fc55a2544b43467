import importlib.resources
import importlib.util
import pkgutil
import sys
import zipfile

with zipfile.ZipFile("lib.zip", "w") as z:
    z.writestr("zipped.py", "NAME = __name__")
sys.path.append("lib.zip")
import zipped

print(zipped.NAME, type(zipped.__loader__).__name__)
print(importlib.util.find_spec("nope"), pkgutil.find_loader("nope"))
print(importlib.resources.files("json").joinpath("decoder.py").is_file())
from importlib import metadata

try:
    metadata.version("nope-nope")
except metadata.PackageNotFoundError as e:
    print("no", e)
import this
