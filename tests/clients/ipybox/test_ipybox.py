"""ipybox 0.6 against a cloche server: its own clients in a container of ours, which is how a
program changes over bit by bit, and ours beside it. Its package does not carry its tests; these go
through the same public names."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import ipybox as theirs
import pytest
from aiohttp import ClientResponseError
from PIL import Image

from cloche.compat import ipybox as ours

BOTH = pytest.mark.parametrize("box", [theirs, ours], ids=["theirs", "ours"])
Use = Callable[[Any, Any, Any], Coroutine[Any, Any, Any]]


def use(box: Any, what: Use, **options: Any) -> Any:
    async def run() -> Any:
        async with ours.ExecutionContainer(**options) as container:
            async with box.ExecutionClient(port=container.executor_port) as code:
                async with box.ResourceClient(port=container.resource_port) as files:
                    return await what(container, code, files)

    return asyncio.run(run())


@BOTH
def test_code(service: Any, box: Any) -> None:
    async def what(_: Any, code: Any, __: Any) -> None:
        assert (await code.execute("print('Hello, world!')")).text == "Hello, world!"
        assert (await code.execute("x = 1")).text is None
        assert (await code.execute("y = x + 1\nprint(f'{x},{y}')")).text == "1,2"
        assert (await code.execute("print('a' * 500000)")).text == "a" * 500_000
        assert (await code.execute("print('a\\n' * 500000)")).text == ("a\n" * 500_000).strip()
        for program, name in (
            ("2 / 0", "ZeroDivisionError"),
            ("while True print(1)", "SyntaxError"),
        ):
            with pytest.raises(box.ExecutionError) as raised:
                await code.execute(program)
            assert name in raised.value.args[0] and name in raised.value.trace
        with pytest.raises(asyncio.TimeoutError):
            await code.execute("a = 5\nwhile True: pass", timeout=1)
        assert (await code.execute("print(a)")).text == "5"

    use(box, what)


@BOTH
def test_output_as_it_comes(service: Any, box: Any) -> None:
    async def what(_: Any, code: Any, __: Any) -> None:
        execution = await code.submit(
            "import asyncio\nfor i in range(9):\n    print(i)\n    await asyncio.sleep(0.01)"
        )
        pieces = [piece async for piece in execution.stream()]
        assert "".join(pieces).split() == [str(i) for i in range(9)] and len(pieces) > 1
        assert (await execution.result()).text == "\n".join(map(str, range(9)))

    use(box, what)


@BOTH
def test_images(service: Any, box: Any) -> None:
    async def what(_: Any, code: Any, __: Any) -> None:
        program = "from PIL import Image\nimport numpy as np\n"
        program += "for n in (50, 30): Image.fromarray(np.zeros((n, n, 3), dtype=np.uint8)).show()"
        images = (await code.execute(program)).images
        assert [image.size for image in images] == [(50, 50), (30, 30)]
        assert all(isinstance(image, Image.Image) for image in images)

    use(box, what)


@BOTH
def test_files(service: Any, box: Any, tmp_path: Path) -> None:
    (tmp_path / "up" / "deep").mkdir(parents=True)
    (tmp_path / "up" / "deep" / "a.py").write_text("x = 1\n")

    async def what(_: Any, code: Any, files: Any) -> None:
        await files.upload_directory("pkg", tmp_path / "up")
        assert await files.get_module_sources(["pkg.deep.a"]) == {"pkg.deep.a": "x = 1\n"}
        assert (await code.execute("from pkg.deep.a import x; print(x)")).text == "1"
        await files.download_directory("pkg", tmp_path / "down")
        assert (tmp_path / "down" / "deep" / "a.py").read_text() == "x = 1\n"
        await files.upload_file("f.txt", tmp_path / "up" / "deep" / "a.py")
        await files.download_file("f.txt", tmp_path / "f.txt")
        assert (tmp_path / "f.txt").read_text() == "x = 1\n"
        await files.delete_file("f.txt")
        for ask in (
            files.delete_file("f.txt"),
            files.download_file("f.txt", tmp_path / "x"),
            files.download_directory("none", tmp_path / "x"),
            files.get_module_sources(["nowhere"]),
        ):
            with pytest.raises(ClientResponseError) as raised:
                await ask
            assert raised.value.status == 404

    use(box, what)


@BOTH
def test_environment_binds_and_firewall(service: Any, box: Any) -> None:
    (service.shared / "in.txt").write_text("from the host")

    async def what(container: Any, code: Any, files: Any) -> None:
        assert (await code.execute("import os; print(os.environ['TEST_VAR'])")).text == "value"
        assert (await code.execute("print(open('work/in.txt').read())")).text == "from the host"
        await container.init_firewall([])
        program = "import urllib.request as u\nu.urlopen('https://example.com', timeout=2)"
        with pytest.raises(box.ExecutionError, match="Network is unreachable"):
            await code.execute(program)
        assert (await code.execute("print(6 * 7)")).text == "42"
        assert await files.get_module_sources(["math"]) == {"math": ""}

    use(box, what, env={"TEST_VAR": "value"}, binds={str(service.shared): "work"})


def test_the_names_and_their_parameters_are_the_same() -> None:
    names = [name for name in vars(theirs) if name[0].isupper() or name == "arun"]
    assert set(names) <= set(vars(ours)), names
    for kind in ("ExecutionContainer", "ExecutionClient", "Execution", "ResourceClient"):
        upstream, own = getattr(theirs, kind), getattr(ours, kind)
        for name, member in vars(upstream).items():
            if name.startswith("_") and name != "__init__":
                continue
            assert hasattr(own, name) or name in ("container_port",), (kind, name)
            if inspect.isfunction(member):
                want = inspect.signature(member).parameters
                have = inspect.signature(getattr(own, name)).parameters
                assert list(want) == list(have)[: len(want)], (kind, name)
                for one in want.values():
                    assert have[one.name].default == one.default, (kind, name, one)
