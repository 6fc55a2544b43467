import contextvars
import queue
import threading

print(threading.stack_size(), threading.TIMEOUT_MAX > 0, threading.current_thread().name)
threading.stack_size(256 * 1024)
local = threading.local()
local.x = 1
q = queue.Queue()
var = contextvars.ContextVar("v", default="d")
var.set("main")


def work(k, barrier):
    barrier.wait()
    q.put((k, hasattr(local, "x"), var.get(), threading.current_thread().name))


barrier = threading.Barrier(4)
threads = [threading.Thread(target=work, args=(k, barrier)) for k in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(sorted(q.queue))
timer = threading.Timer(0.01, print, ["timer"])
timer.start()
timer.join()
c = threading.Condition()
with c:
    print(c.wait(0.01))
print(threading.get_native_id() > 0, threading.active_count())
