import asyncio


async def producer(q):
    for k in range(3):
        await q.put(k)
        await asyncio.sleep(0)
    await q.put(None)


async def consumer(q):
    got = []
    while (x := await q.get()) is not None:
        got.append(x)
    return got


async def main():
    q = asyncio.Queue(1)
    async with asyncio.TaskGroup() as tg:
        tg.create_task(producer(q))
        task = tg.create_task(consumer(q))
    print(task.result())
    try:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(100)
    except TimeoutError:
        print("timeout")
    print(await asyncio.to_thread(lambda: "thread"))
    proc = await asyncio.create_subprocess_exec("echo", "sub", stdout=asyncio.subprocess.PIPE)
    print((await proc.communicate())[0], proc.returncode)


asyncio.run(main())
