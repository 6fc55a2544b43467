import getpass
import os
import pathlib
import pwd
import grp

user = pwd.getpwuid(os.getuid())
print(getpass.getuser() == user.pw_name, grp.getgrgid(os.getgid()).gr_gid == os.getgid())
print(os.path.expanduser("~") == str(pathlib.Path.home()), os.path.isdir(os.path.expanduser("~")))
