import sys
import threading

print(threading.main_thread() is threading.current_thread(), threading.active_count())
print([(t.name, t.is_alive(), t.daemon) for t in threading.enumerate()])
print(len(sys._current_frames()))
print(sys.gettrace(), sys.getprofile(), threading.gettrace())
