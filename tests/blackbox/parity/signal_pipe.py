import os
import signal

print(signal.getsignal(signal.SIGPIPE))
r, w = os.pipe()
os.close(r)
try:
    os.write(w, b"x")
except BrokenPipeError as e:
    print(e)
import subprocess

p = subprocess.run("head -c 1 /dev/zero | wc -c; yes | head -1", shell=True, capture_output=True)
print(p.stdout, p.stderr, p.returncode)
