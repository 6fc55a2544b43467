import threading
import traceback


def f():
    traceback.print_stack()


f()
print(traceback.extract_stack()[0].name, len(traceback.extract_stack()))
t = threading.Thread(target=f)
t.start()
t.join()
