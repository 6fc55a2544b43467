import atexit
import threading

done = threading.Event()


def worker():
    done.wait()
    print("thread ends")


def release():
    print("threading atexit")
    done.set()


atexit.register(print, "atexit runs")
threading._register_atexit(release)
threading.Thread(target=worker).start()
print("main ends")
