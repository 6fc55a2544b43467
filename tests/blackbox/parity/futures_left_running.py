import concurrent.futures as cf

pool = cf.ThreadPoolExecutor(2)
futures = [pool.submit(print, "job", k) for k in range(1)]
print(cf.wait(futures).not_done)
