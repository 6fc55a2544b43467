import multiprocessing as mp


def fail(x):
    raise ValueError(f"in a worker {x}")


if __name__ == "__main__":
    with mp.Pool(1) as pool:
        try:
            pool.map(fail, [1])
        except ValueError as e:
            print("got", e, type(e.__cause__).__name__)
    p = mp.Process(target=fail, args=(2,))
    p.start()
    p.join()
    print(p.exitcode)
