import subprocess
import sys

code = "import os; print(sorted(os.listdir('/proc/self/fd')))"
print(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, close_fds=False).stdout)
print(subprocess.getoutput("ls /proc/self/fd | wc -l"))
