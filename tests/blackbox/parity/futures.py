import concurrent.futures as cf


def square(n):
    return n * n


def fail():
    raise KeyError("future")


if __name__ == "__main__":
    for kind in (cf.ThreadPoolExecutor, cf.ProcessPoolExecutor):
        with kind(2) as pool:
            print(kind.__name__, list(pool.map(square, range(5))))
            f = pool.submit(fail)
            print(type(f.exception()).__name__)
    with cf.ThreadPoolExecutor() as pool:
        done, left = cf.wait([pool.submit(square, 3)], timeout=30)
        print(len(done), len(left))
