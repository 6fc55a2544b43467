"""A thousand sandboxes from one event loop, in waves of what the machine bears."""

from __future__ import annotations

import asyncio

import pytest

import cloche
from cloche.aio import AsyncClient, AsyncSandbox
from harness import LiveService

ALL, WAVE = 1000, 20


async def one(client: AsyncClient, gate: asyncio.Semaphore, number: int) -> bool:
    async with gate, await AsyncSandbox.create(profile="base", client=client) as box:
        await box.run(f"mine = {number}")
        return (await box.run("mine")).text == str(number)


async def everyone(url: str) -> list[bool]:
    gate = asyncio.Semaphore(WAVE)
    async with AsyncClient(url) as client:
        return await asyncio.gather(*(one(client, gate, number) for number in range(ALL)))


@pytest.mark.once
def test_a_thousand_sandboxes(live: LiveService) -> None:
    assert asyncio.run(everyone(live.url)) == [True] * ALL


@pytest.mark.once
def test_more_than_there_is_room_for(live: LiveService) -> None:
    """Five hundred programs at once, from a client that waits its turn."""

    async def work() -> set[str]:
        async with AsyncClient(live.url, retry_seconds=120) as client:
            runs = (client.run(f"{n} * 2", timeout=60) for n in range(500))
            return {str(result.text) for result in await asyncio.gather(*runs)}

    assert asyncio.run(work()) == {str(2 * n) for n in range(500)}


def test_the_default_client_of_each_loop(live: LiveService) -> None:
    """Connections cannot leave their event loop."""

    async def work() -> str:
        client = cloche._default.async_default_client()
        try:
            return str((await cloche.aio.run("6 * 7")).text)
        finally:
            await client.aclose()

    assert [asyncio.run(work()) for _ in range(3)] == ["42"] * 3


def test_a_cancelled_cell_is_interrupted(live: LiveService) -> None:
    async def work() -> str:
        async with AsyncClient(live.url) as client:
            async with await AsyncSandbox.create(profile="base", client=client) as box:
                begun = asyncio.Event()
                task = asyncio.create_task(
                    box.run(
                        "x = 5\nprint('in', flush=True)\nwhile True: pass",
                        on_stdout=lambda line: begun.set(),
                    )
                )
                await begun.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                return str((await box.run("x")).text)

    assert asyncio.run(work()) == "5"


def test_callbacks_may_be_coroutines(live: LiveService) -> None:
    async def work() -> list[str]:
        lines: list[str] = []

        async def take(line: str) -> None:
            await asyncio.sleep(0)
            lines.append(line)

        async def answer(prompt: str) -> str:
            await asyncio.sleep(0)
            return prompt.upper()

        async with AsyncClient(live.url) as client:
            async with await AsyncSandbox.create(profile="base", client=client) as box:
                await box.run("print(input('who'))", on_stdout=take, on_input=answer)
        return lines

    assert asyncio.run(work()) == ["WHO"]
