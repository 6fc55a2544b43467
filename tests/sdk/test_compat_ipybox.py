"""cloche.compat.ipybox: ipybox's names over a cloche server, as its users use them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from cloche import errors
from harness import LiveService, settled
from http_client import get
from keyed_live import KeyedLive

for name in ("websockets", "PIL"):
    pytest.importorskip(name)
ipybox = pytest.importorskip("cloche.compat.ipybox")

Use = Callable[[Any, Any, Any], Coroutine[Any, Any, Any]]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("shared")
    top.chmod(0o777)
    return top


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, given: Path) -> Iterator[LiveService]:
    service = LiveService(tmp_path_factory.mktemp("compat"), "--bind-allow", f"{given}:rw")
    yield from settled(service)


@pytest.fixture(autouse=True)
def server(service: LiveService, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CLOCHE_SERVER", service.url)
    monkeypatch.delenv("CLOCHE_API_KEY", raising=False)
    yield
    assert get(service.port, "/v1/sandboxes").json["sandboxes"] == []


def use(what: Use, **options: Any) -> Any:
    """In a container, with a client of each kind."""

    async def run() -> Any:
        async with ipybox.ExecutionContainer(**options) as container:
            async with ipybox.ExecutionClient(port=container.executor_port) as code:
                async with ipybox.ResourceClient(port=container.resource_port) as files:
                    return await what(container, code, files)

    return asyncio.run(run())


# ---------------------------------------------------------------------------- code


def test_code_keeps_its_state_and_tells_what_it_printed() -> None:
    async def what(_: Any, code: Any, __: Any) -> None:
        assert (await code.execute("print('a')\nprint('b')")).text == "a\nb"
        assert (await code.execute("x = 1")).text is None
        assert (await code.execute("x + 1")).text == "2"
        assert (
            await code.execute("import asyncio\nawait asyncio.sleep(0, 'slept')")
        ).text == "'slept'"
        assert (await code.execute("!echo shell")).text == "shell"
        assert (await code.execute("import sys; '/app' in sys.path")).text == "True"

    use(what)


def test_long_programs_and_long_output() -> None:
    async def what(_: Any, code: Any, __: Any) -> None:
        assert (await code.execute("print('a' * 500_000)")).text == "a" * 500_000
        assert (await code.execute("print('a\\n' * 500_000)")).text == ("a\n" * 500_000).strip()
        lines = ["n = 0", *(f"n += {i}" for i in range(10_000)), "print(n)"]
        assert (await code.execute("\n".join(lines))).text == str(sum(range(10_000)))

    use(what)


def test_errors_are_raised_with_their_traceback() -> None:
    async def what(_: Any, code: Any, __: Any) -> None:
        for program, kind in (
            ("2 / 0", "ZeroDivisionError"),
            ("while True print(1)", "SyntaxError"),
        ):
            with pytest.raises(ipybox.ExecutionError) as raised:
                await code.execute(program)
            assert kind in raised.value.args[0] and kind in raised.value.trace
        assert (await code.execute("print('alive')")).text == "alive"

    use(what)


def test_a_timeout_interrupts_and_keeps_the_state() -> None:
    async def what(_: Any, code: Any, __: Any) -> None:
        with pytest.raises(asyncio.TimeoutError):
            await code.execute("a = 5\nwhile True: pass", timeout=1)
        assert (await code.execute("print(a)")).text == "5"

    use(what)


def test_output_comes_as_it_is_printed() -> None:
    async def what(_: Any, code: Any, __: Any) -> None:
        gate = "import os, time\nprint('begun', flush=True)\n"
        gate += "while not os.path.exists('go'): time.sleep(0.01)\nprint('ended')"
        execution = await code.submit(gate)
        async for piece in execution.stream():
            if "begun" in piece:
                other = ipybox.ExecutionClient(port=code.port)
                await other.connect()
                await other.execute("open('go', 'w').close()")
                await other.disconnect()
        assert (await execution.result()).text == "begun\nended"

    use(what)


def test_two_executions_each_hear_their_own() -> None:
    async def what(_: Any, code: Any, __: Any) -> None:
        first, second = await code.submit("print('one')"), await code.submit("print('two')")
        assert (await second.result()).text == "two"
        assert (await first.result()).text == "one"

    use(what)


def test_images_are_those_of_pillow() -> None:
    async def what(_: Any, code: Any, __: Any) -> None:
        program = (
            "from PIL import Image\n"
            "Image.new('RGB', (50, 40)).show()\nImage.new('RGB', (30, 20), 'red').show()"
        )
        result = await code.execute(program)
        assert [image.size for image in result.images] == [(50, 40), (30, 20)]
        assert result.images[1].getpixel((0, 0)) == (255, 0, 0)

    use(what)


def test_kernels_of_a_container_share_files_and_nothing_else() -> None:
    async def what(container: Any, code: Any, __: Any) -> None:
        await code.execute("x = 1\nopen('f', 'w').write('shared')")
        async with ipybox.ExecutionClient(port=container.executor_port) as other:
            assert other.kernel_id != code.kernel_id
            assert (await other.execute("print(open('/app/f').read())")).text == "shared"
            with pytest.raises(ipybox.ExecutionError, match="NameError"):
                await other.execute("x")

    use(what)


def test_a_client_that_is_not_connected_says_so(service: LiveService) -> None:
    client = ipybox.ExecutionClient(port=service.port)
    with pytest.raises(ValueError, match="Not connected to kernel"):
        client.kernel_id
    with pytest.raises(ipybox.ConnectionError, match="Not connected"):
        asyncio.run(client.execute("1"))
    assert client.base_http_url == f"http://localhost:{service.port}/api/kernels"

    async def nobody() -> None:
        await ipybox.ExecutionClient(port=1).connect(retries=2, retry_interval=0.01)

    with pytest.raises(ipybox.ConnectionError, match="Failed to create kernel"):
        asyncio.run(nobody())


# ---------------------------------------------------------------------------- files


def test_files_and_directories(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "a.txt").write_bytes(b"a" * 3_000_000)
    (source / "deep" / "b c.txt").write_text("b")

    async def what(_: Any, code: Any, files: Any) -> None:
        await files.upload_file("in/a b.txt", source / "a.txt")
        assert (await code.execute("print(len(open('in/a b.txt').read()))")).text == "3000000"
        await files.download_file("in/a b.txt", tmp_path / "got" / "a.txt")
        assert (tmp_path / "got" / "a.txt").read_bytes() == b"a" * 3_000_000
        await files.upload_directory("tree", source)
        await files.download_directory("tree", tmp_path / "back")
        assert (tmp_path / "back" / "deep" / "b c.txt").read_text() == "b"
        await files.delete_file("in/a b.txt")
        for ask in (
            files.delete_file("in/a b.txt"),
            files.download_file("in/a b.txt", tmp_path / "none"),
            files.download_directory("none", tmp_path / "none"),
        ):
            with pytest.raises(ipybox.ClientResponseError) as raised:
                await ask
            assert raised.value.status == 404 and "not found" in raised.value.message
        for ask in (
            files.upload_file("x", tmp_path / "none"),
            files.upload_directory("x", tmp_path / "none"),
        ):
            with pytest.raises(FileNotFoundError, match="not found"):
                await ask

    use(what)


def test_errors_are_those_that_users_of_aiohttp_catch() -> None:
    aiohttp = pytest.importorskip("aiohttp")
    assert issubclass(ipybox.ClientResponseError, aiohttp.ClientResponseError)


def test_sources_of_modules() -> None:
    async def what(_: Any, code: Any, files: Any) -> None:
        await code.execute("import os\nos.mkdir('pkg')\nopen('pkg/mod.py', 'w').write('x = 1\\n')")
        assert await files.get_module_sources(["pkg.mod", "math"]) == {
            "pkg.mod": "x = 1\n",
            "math": "",
        }
        with pytest.raises(ipybox.ClientResponseError) as raised:
            await files.get_module_sources(["nowhere"])
        assert (raised.value.status, raised.value.message) == (404, "Module nowhere not found")

    use(what)


# ---------------------------------------------------------------------------- containers


def test_environment_and_binds(given: Path) -> None:
    (given / "in.txt").write_text("from the host")

    async def what(_: Any, code: Any, __: Any) -> None:
        assert (await code.execute("import os; print(os.environ['TEST_VAR'])")).text == "value"
        assert (await code.execute("print(open('work/in.txt').read())")).text == "from the host"
        await code.execute("open('/app/work/out.txt', 'w').write('from inside')")
        assert (given / "out.txt").read_text() == "from inside"

    use(what, env={"TEST_VAR": "value"}, binds={str(given): "work"})


def test_a_directory_that_is_not_there_is_made(given: Path) -> None:
    async def what(_: Any, code: Any, __: Any) -> None:
        assert (await code.execute("import os; print(os.listdir('new'))")).text == "[]"

    use(what, binds={str(given / "made" / "new"): "new"})
    assert (given / "made" / "new").is_dir()


def test_what_the_operator_does_not_allow_is_refused(tmp_path: Path) -> None:
    async def nothing(*_: Any) -> None:
        pass

    with pytest.raises(errors.BindNotAllowed, match="does not allow"):
        use(nothing, binds={str(tmp_path): "work"})
    with pytest.raises(errors.UnknownProfile, match="no profile"):
        use(nothing, tag="gradion-ai/none")


def test_a_container_that_is_not_running_says_so() -> None:
    container = ipybox.ExecutionContainer()
    for name in ("executor_port", "resource_port"):
        with pytest.raises(RuntimeError, match="Container not running"):
            getattr(container, name)
    with pytest.raises(RuntimeError, match="Container not running"):
        asyncio.run(container.init_firewall())
    asyncio.run(container.kill())
    with pytest.raises(ValueError, match="the server chooses"):
        ipybox.ExecutionContainer(executor_port=8888)


def test_containers_are_apart(service: LiveService) -> None:
    async def run() -> None:
        async with ipybox.ExecutionContainer() as one, ipybox.ExecutionContainer(tag="base") as two:
            assert one.executor_port != two.executor_port == two.resource_port
            async with ipybox.ExecutionClient(port=one.executor_port) as code:
                await code.execute("open('f', 'w').write('x')")
            async with ipybox.ExecutionClient(port=two.executor_port) as code:
                assert (await code.execute("import os; print(os.listdir())")).text == "[]"
            found = get(service.port, "/v1/sandboxes?metadata.by=ipybox").json["sandboxes"]
            assert {box["id"] for box in found} == {one.sandbox.id, two.sandbox.id}

    asyncio.run(run())


BLOCKED = "import urllib.request\nurllib.request.urlopen('https://example.com', timeout=2)"


def test_without_a_network_it_is_unreachable_by_whatever_name() -> None:
    async def what(container: Any, code: Any, __: Any) -> None:
        await container.init_firewall([])
        with pytest.raises(ipybox.ExecutionError, match="Network is unreachable"):
            await code.execute(BLOCKED)
        assert (await code.execute("print('works')")).text == "works"
        with pytest.raises(RuntimeError, match="Failed to initialize firewall.*granted"):
            await container.init_firewall(["example.com"])

    use(what)


# ---------------------------------------------------------------------------- keys, and threads


def test_with_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keyed = KeyedLive(tmp_path)
    try:
        monkeypatch.setenv("CLOCHE_SERVER", keyed.url)
        monkeypatch.setenv("CLOCHE_API_KEY", keyed.keys[0])

        async def what(container: Any, code: Any, files: Any) -> None:
            assert (await code.execute("6 * 7")).text == "42"
            assert await files.get_module_sources(["math"]) == {"math": ""}
            bob = ipybox.ResourceClient(port=container.resource_port, api_key=keyed.keys[1])
            await bob.connect()
            with pytest.raises(ipybox.ClientResponseError) as raised:
                await bob.get_module_sources(["math"])
            assert raised.value.status == 404
            await bob.disconnect()

        use(what)
        keyed.stop()
    finally:
        keyed.kill()


def test_arun_calls_in_a_thread() -> None:
    async def run() -> Any:
        return await asyncio.gather(ipybox.arun(time.sleep, 0), ipybox.arun(os.getpid))

    assert asyncio.run(run()) == [None, os.getpid()]
