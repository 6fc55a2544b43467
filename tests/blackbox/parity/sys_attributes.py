import sys

print(sys.argv, sys.orig_argv[1:], sys.path[0])
print(sys.flags)
print(sys.dont_write_bytecode, sys.pycache_prefix, sys.executable, sys.prefix, sys.base_prefix)
print(sys.version_info[:3], sys.implementation.name, sys.platform, sys.byteorder, sys.maxsize)
print(sys.getdefaultencoding(), sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())
print(sys.getswitchinterval(), sys.get_int_max_str_digits(), sys.hash_info.algorithm)
print(hasattr(sys, "ps1"), hasattr(sys, "last_type"), sys.displayhook is sys.__displayhook__)
print(sys.excepthook is sys.__excepthook__, sys.unraisablehook is sys.__unraisablehook__)
print(sys.breakpointhook is sys.__breakpointhook__, sys.is_finalizing(), sys.platlibdir)
print(sys.api_version, sys.abiflags == "", sys.float_repr_style, sys.thread_info)
print(sys._xoptions, sys.getallocatedblocks() > 0, sys.getdlopenflags())
