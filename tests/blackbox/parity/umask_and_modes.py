import os
import stat

print(oct(os.umask(0o22)))
open("file", "w").close()
os.mkdir("dir")
print(oct(os.stat("file").st_mode), oct(os.stat("dir").st_mode))
os.chmod("file", 0o4755)
print(stat.filemode(os.stat("file").st_mode), os.access("file", os.X_OK))
os.truncate("file", 100)
print(os.stat("file").st_size, os.stat("file").st_uid == os.getuid())
os.utime("file", (1, 2))
print(os.stat("file").st_mtime, os.stat("file").st_nlink)
os.link("file", "hard")
os.symlink("file", "soft")
print(os.stat("file").st_nlink, os.readlink("soft"), os.path.realpath("soft") == os.path.abspath("file"))
os.setxattr
