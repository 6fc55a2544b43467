import os
import sys

print("parent", flush=True)
pid = os.fork()
if pid == 0:
    print("child")
    sys.exit(7)
_, status = os.waitpid(pid, 0)
print(os.waitstatus_to_exitcode(status))
pid = os.posix_spawn("/bin/echo", ["echo", "spawned"], os.environ)
print(os.waitpid(pid, 0)[1])
try:
    os.wait()
except ChildProcessError as e:
    print(e)
print(os.spawnlp(os.P_WAIT, "true", "true"), os.system("exit 2") >> 8)
r, w = os.pipe()
if os.fork() == 0:
    os.close(r)
    os.write(w, b"from the child")
    os._exit(0)
os.close(w)
print(os.read(r, 100), os.wait()[1])
