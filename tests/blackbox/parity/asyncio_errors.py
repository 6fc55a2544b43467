import asyncio


async def fail():
    await asyncio.sleep(0)
    raise ValueError("in a task")


async def main():
    task = asyncio.create_task(fail(), name="failing")
    await asyncio.sleep(0.01)
    print(task.done(), repr(task.exception()))
    del task
    forgotten = asyncio.create_task(fail(), name="forgotten")
    await asyncio.sleep(0.01)
    del forgotten
    await fail()


asyncio.run(main())
