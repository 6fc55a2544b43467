import asyncio


async def agen():
    try:
        yield 1
        yield 2
    finally:
        print("agen closed")


async def main():
    async for x in agen():
        print(x)
        break
    print("main ends")


asyncio.run(main())
