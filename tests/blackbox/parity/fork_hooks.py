"""What the standard library does around a fork: locks, seeds and threads in the child."""

import logging
import os
import random
import sys
import threading

order = []
os.register_at_fork(
    before=lambda: order.append("before"),
    after_in_parent=lambda: order.append("parent"),
    after_in_child=lambda: order.append("child"),
)
logging.basicConfig(stream=sys.stdout, format="%(message)s")
handler = logging.getLogger().handlers[0]

go, held = threading.Event(), threading.Event()


def hold():
    with handler.lock:
        held.set()
        go.wait()


thread = threading.Thread(target=hold)
thread.start()
held.wait()
go.set()
thread.join()
waiting = threading.Event()
other = threading.Thread(target=waiting.wait)
other.start()
random.seed(1)
before = random.getstate()
ends = os.pipe()
pid = os.fork()
if pid == 0:
    os.write(ends[1], str(random.getstate() == before).encode())
    logging.warning("child logs; threads: %d; %s", threading.active_count(), order)
    print("main again:", threading.current_thread() is threading.main_thread())
    sys.stdout.flush()
    os._exit(0)
os.waitpid(pid, 0)
print("parent threads:", threading.active_count(), order)
print("same seed in the child:", os.read(ends[0], 9))
print("parent unchanged:", random.getstate() == before)
waiting.set()
other.join()
