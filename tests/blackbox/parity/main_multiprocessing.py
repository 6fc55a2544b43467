import multiprocessing as mp
from dataclasses import dataclass


@dataclass
class Job:
    n: int


def work(job):
    return Job(job.n * job.n)


if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        ctx = mp.get_context(method)
        with ctx.Pool(2) as pool:
            print(method, pool.map(work, [Job(n) for n in range(3)]))
        q = ctx.Queue()
        p = ctx.Process(target=q.put, args=(Job(7),), name="putter")
        p.start()
        print(q.get(), p.name)
        p.join()
        print(p.exitcode)
