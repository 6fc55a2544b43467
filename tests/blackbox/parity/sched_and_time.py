import sched
import time

s = sched.scheduler(time.monotonic, time.sleep)
s.enter(0.02, 1, print, ("second",))
s.enter(0.01, 1, print, ("first",))
s.run()
a = time.perf_counter()
time.sleep(0.01)
print(time.perf_counter() - a >= 0.01, time.process_time() >= 0, time.get_clock_info("monotonic").monotonic)
print(abs(time.time() - time.clock_gettime(time.CLOCK_REALTIME)) < 10, time.thread_time() >= 0)
