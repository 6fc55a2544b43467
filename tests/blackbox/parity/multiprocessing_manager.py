import multiprocessing as mp


def add(shared, lock, n):
    with lock:
        shared["total"] = shared.get("total", 0) + n


if __name__ == "__main__":
    with mp.Manager() as manager:
        shared, lock = manager.dict(), manager.Lock()
        jobs = [mp.Process(target=add, args=(shared, lock, n)) for n in range(4)]
        for j in jobs:
            j.start()
        for j in jobs:
            j.join()
        print(dict(shared))
