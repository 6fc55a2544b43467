import subprocess
import sys

p = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(p.communicate(b"through cat"), p.returncode)
print(subprocess.run(["sh", "-c", "echo out; echo err >&2; exit 3"], capture_output=True))
subprocess.run(["echo", "inherited stdout"])
subprocess.run("echo inherited stderr >&2", shell=True)
try:
    subprocess.run(["false"], check=True)
except subprocess.CalledProcessError as e:
    print(e)
try:
    subprocess.run(["/nonexistent"])
except FileNotFoundError as e:
    print(e)
try:
    subprocess.run(["sleep", "100"], timeout=0.05)
except subprocess.TimeoutExpired as e:
    print("timeout", e.cmd)
p = subprocess.run(["sh", "-c", "kill -9 $$"])
print(p.returncode)
print(subprocess.check_output([sys.executable, "-c", "import sys; print(sys.argv)", "a"]))
print(subprocess.run(["cat"], capture_output=True).stdout)
