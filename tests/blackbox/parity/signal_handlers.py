import os
import signal
import time

signal.signal(signal.SIGUSR1, lambda s, f: print("usr1", f.f_code.co_name))
os.kill(os.getpid(), signal.SIGUSR1)


def alarm(s, f):
    raise TimeoutError("alarm")


signal.signal(signal.SIGALRM, alarm)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    while True:
        time.sleep(1)
except TimeoutError as e:
    print(e)
signal.signal(signal.SIGCHLD, lambda s, f: print("child"))
if os.fork() == 0:
    os._exit(0)
os.wait()
print(signal.strsignal(11), signal.sigtimedwait([signal.SIGUSR2], 0))
