import fcntl
import glob
import io
import os
import pathlib

p = pathlib.Path("dir") / "sub"
p.mkdir(parents=True)
(p / "ü.txt").write_text("ä\r\nb\n", encoding="utf-8", newline="")
print((p / "ü.txt").read_bytes(), open(p / "ü.txt").readlines(), open(p / "ü.txt").encoding)
print(sorted(glob.glob("**/*", recursive=True)), [e.name for e in os.scandir("dir")])
with open("f", "w+b", buffering=0) as f:
    f.write(b"abc")
    os.lseek(f.fileno(), 0, 0)
    print(f.read(), f.seek(1), f.truncate(), f.name, f)
with open("f") as a:
    fcntl.flock(a, fcntl.LOCK_EX)
    print(fcntl.fcntl(a, fcntl.F_GETFD))
for bad in ("nope", "dir", "f/x"):
    try:
        open(bad, "w" if bad == "dir" else "r")
    except OSError as e:
        print(type(e).__name__, e)
print(io.DEFAULT_BUFFER_SIZE, os.sep, os.linesep == "\n", os.devnull, os.path.getsize("f"))
os.rename("f", "g")
os.replace("g", "dir/g")
os.remove("dir/g")
print(list(os.walk("dir")))
f = open("unclosed", "w")
