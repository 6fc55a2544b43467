import asyncio


async def serve(reader, writer):
    writer.write((await reader.readline()).upper())
    await writer.drain()
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"hello\n")
    print(await reader.read())
    writer.close()
    server.close()
    await server.wait_closed()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(10, print, "signal in the loop")
    import os

    os.kill(os.getpid(), 10)
    await asyncio.sleep(0.05)


asyncio.run(main())
