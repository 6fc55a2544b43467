"""Things where the server will look for files: none is followed, none blocks, no hole is data.

#= made: all
#? status=ok
"""

import os
import socket
import stat

from attempt import says

os.symlink("/etc/passwd", "link")
os.symlink("/", "root")
os.symlink("good", "link_to_good")
os.symlink("loop", "loop")
os.mkfifo("fifo")
socket.socket(socket.AF_UNIX).bind("socket")
os.mkdir("directory.txt")
os.mkdir("closed")
open("closed/inside", "w").write("i")
os.chmod("closed", 0)
open("unreadable", "w").write("u")
os.chmod("unreadable", 0)
open("setuid", "w").write("s")
os.chmod("setuid", 0o6777)
open("good", "w").write("g")
os.link("good", "hard")
open(b"\xff\xfe not utf-8", "w").write("n")
open("line\nbreak", "w").write("l")
open("x" * 255, "w").write("x")
with open("larger than the disk", "wb") as file:
    file.truncate(1 << 40)
with open("hole", "wb") as file:
    file.seek(10 << 20)
    file.write(b"end")
here = os.getcwd()
for depth in range(1000):
    os.mkdir("deep")
    os.chdir("deep")
open("bottom", "w").write("b")
os.chdir(here)
assert stat.S_ISFIFO(os.stat("fifo").st_mode)
says("made", "all")
