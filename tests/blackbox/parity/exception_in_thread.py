import threading


def work():
    raise KeyError("in a thread")


t = threading.Thread(target=work, name="worker")
t.start()
t.join()
print("main goes on")
