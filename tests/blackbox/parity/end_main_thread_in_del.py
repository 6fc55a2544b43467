import threading


class Asking:
    def __del__(self):
        print("alive", threading.main_thread().is_alive())


kept = Asking()
print("body done")
