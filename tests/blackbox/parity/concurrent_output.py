import threading
import sys

lock = threading.Lock()
count = 0


def work():
    global count
    for _ in range(1000):
        with lock:
            count += 1


threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
print(count)
