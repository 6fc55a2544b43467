import site
import sys
import sysconfig

print(site.ENABLE_USER_SITE, site.getsitepackages(), "site" in sys.modules)
print(sysconfig.get_paths()["stdlib"], sysconfig.get_python_version())
print(exit, quit, copyright, type(help).__name__, credits is not None)
print("readline" in sys.modules, hasattr(sys, "__interactivehook__"))
