import cProfile
import io
import pstats
import timeit
import tracemalloc

print(timeit.timeit("x = 1", number=10) > 0)
p = cProfile.Profile()
p.runcall(sorted, [3, 1, 2])
s = io.StringIO()
pstats.Stats(p, stream=s).print_stats()
print("sorted" in s.getvalue(), tracemalloc.is_tracing())
tracemalloc.start()
x = bytearray(1000000)
print(tracemalloc.get_traced_memory()[0] > 900000)
tracemalloc.stop()
import trace

t = trace.Trace(count=1, trace=0)
t.runfunc(lambda: 1)
print(len(t.results().counts) > 0)
