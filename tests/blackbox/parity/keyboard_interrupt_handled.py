import os
import signal

try:
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(10**6):
        pass
except KeyboardInterrupt:
    print("interrupted")
signal.signal(signal.SIGINT, lambda s, f: print("handler", s))
os.kill(os.getpid(), signal.SIGINT)
print("done")
