import os
import pty
import tty

pid, fd = pty.fork()
if pid == 0:
    print("terminal", os.isatty(0), os.get_terminal_size().columns >= 0)
    os._exit(0)
data = b""
while True:
    try:
        chunk = os.read(fd, 100)
    except OSError:
        break
    if not chunk:
        break
    data += chunk
print(data, os.waitpid(pid, 0)[1])
m, s = pty.openpty()
print(os.ttyname(s).startswith("/dev/pts/"))
tty.setraw(s)
os.write(m, b"x")
print(os.read(s, 1))
