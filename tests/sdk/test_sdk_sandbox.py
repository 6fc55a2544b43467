"""Live sandboxes: their life, their kernels, what runs in them."""

from __future__ import annotations

import base64
import threading
from pathlib import Path
from typing import Any

import pytest

from cloche import errors
from driven import World
from harness import eventually


def test_variables_stay(box: Any) -> None:
    assert box.run("x = 41").text is None
    result = box.run("print('out')\nx + 1")
    assert (result.text, result.stdout, result.execution_count) == ("42", "out\n", 2)
    assert result.results[0].is_main_result and result.results[0].text == "42"
    variable = box.variables()["x"]
    assert (variable.type, variable.repr) == ("int", "41")
    assert len(box.variables(limit=1)) == 1


def test_its_life(sdk: World, client: Any) -> None:
    box = sdk.Sandbox.create(
        profile="base",
        client=client,
        files={"a": "1"},
        env={"WHO": "you"},
        limits={"memory_mb": 200},
        network="none",
        ttl=600,
        idle=300,
        metadata={"k": "v"},
        name="sdk-life",
    )
    try:
        info = box.info()
        assert (info.id, info.name, info.state, info.metadata) == (
            box.id,
            "sdk-life",
            "running",
            {"k": "v"},
        )
        assert (info.ttl_seconds, info.idle_seconds, info.limits["memory_mb"]) == (600, 300, 200)
        assert box.run("import os; open('a').read() + os.environ['WHO']").text == "'1you'"
        assert sdk.Sandbox.connect("sdk-life", client=client).id == box.id
        assert sdk.Sandbox.connect(box.id, client=client).run("1").text == "1"
        assert [i.id for i in sdk.Sandbox.list(metadata={"k": "v"}, client=client)] == [box.id]
        assert sdk.Sandbox.list(metadata={"k": "w"}, client=client) == []
        changed = box.update(ttl=900, metadata={"k": "w"}, limits={"memory_mb": 250})
        assert (changed.ttl_seconds, changed.metadata) == (900, {"k": "w"})
        assert box.pause().state == "paused"
        with pytest.raises(errors.SandboxPaused):
            box.run("1")
        assert box.resume().state == "running"
        assert box.network() == "none" and box.set_network("none") is not False
    finally:
        box.delete()
    box.delete()  # one that is gone is no error
    with pytest.raises(errors.SandboxGone, match="deleted"):
        box.info()
    with pytest.raises(errors.NoSuchSandbox):
        sdk.Sandbox.connect("nobody", client=client)


def test_what_is_shown(box: Any) -> None:
    png = base64.b64encode(b"\x89PNG picture").decode()
    code = f"""
from IPython.display import display, HTML, update_display, clear_output
display({{"image/png": "{png}", "text/plain": "p"}}, raw=True)
handle = display(HTML("<b>1</b>"), display_id="d")
update_display(HTML("<b>2</b>"), display_id="d")
{{"a": 1}}
"""
    seen: list[Any] = []
    result = box.run(code, on_result=seen.append)
    assert [shown.png for shown in result.results] == [b"\x89PNG picture", None, None]
    assert result.results[1].html == "<b>2</b>" and result.text == "{'a': 1}"
    assert len(seen) == 4
    cleared = box.run(
        "print('gone')\nclear_output()\nprint('here')\nclear_output(wait=True)\nprint('last')"
    )
    assert cleared.stdout == "last\n"
    kept = box.run("print('kept')\nclear_output(wait=True)")
    assert kept.stdout == "kept\n"


def test_a_stream_gives_what_a_whole_reply_has(box: Any, client: Any) -> None:
    """The server's own result of the execution, against what was put together from its events."""
    result = box.run("print('a' * 100000)\nimport sys; print('e', file=sys.stderr)\n[1, 2]")
    whole = client.result(result.id)
    ours, theirs = result.raw, whole.raw
    for name in ("stdout", "stderr", "text", "status", "execution_count", "error"):
        assert ours[name] == theirs[name], name
    assert [r["data"] for r in ours["results"]] == [r["data"] for r in theirs["results"]]


def test_answers_to_input(box: Any) -> None:
    prompts: list[str] = []

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        return "Ada" if len(prompts) == 1 else "Byron"

    result = box.run("input('first? ') + ' ' + input('last? ')", on_input=answer)
    assert (result.text, prompts) == ("'Ada Byron'", ["first? ", "last? "])
    assert box.run("input()", on_input=lambda prompt: None).error.name == "EOFError"
    assert box.run("input()").error.name in ("EOFError", "StdinNotImplementedError")
    assert box.run("input() + input()", stdin="a\nb\n").text == "'ab'"
    for event in box.stream("input('?')"):
        if event.type == "input":
            box.answer("streamed")
        if event.type == "result":
            assert event.data["data"]["text/plain"] == "'streamed'"
    with pytest.raises(errors.NotWaiting):
        box.end_input()


def test_interrupts(sdk: World, client: Any, box: Any) -> None:
    """From elsewhere, by a timeout, and by leaving."""
    assert box.interrupt() is False
    box.run("x = 1")
    events = box.stream("print('in', flush=True)\nwhile True: pass")
    for event in events:
        if event.text.startswith("in"):
            assert box.interrupt() is True
    assert events.result().status == "interrupted"
    assert box.run("while True: pass", timeout=0.2).status == "timeout"
    assert box.run("x").text == "1"


def test_a_callback_that_fails_ends_its_cell(box: Any, client: Any) -> None:
    class Enough(Exception):
        pass

    started: list[str] = []

    def stop(event: Any) -> None:
        if event.type == "start":
            started.append(event.data["id"])
        if event.text:
            raise Enough(event.text)

    box.run("x = 5")
    with pytest.raises(Enough, match="begun"):
        box.run("print('begun', flush=True)\nwhile True: pass", timeout=10, on_event=stop)
    assert box.run("x", timeout=60).text == "5"
    assert client.result(started[0]).status == "interrupted"  # and no timeout


def test_a_disconnect_can_interrupt(box: Any) -> None:
    with box.stream(
        "print('in', flush=True)\nwhile True: pass", on_disconnect="interrupt"
    ) as events:
        for event in events:
            if event.text:
                break
    assert box.run("'free'").text == "'free'"


def test_kernels(box: Any) -> None:
    box.run("x = 1")
    other = box.kernels.create(env={"A": "b"}, cwd="/tmp")
    assert other.run("'x' in globals(), __import__('os').getcwd()").text == "(False, '/tmp')"
    assert [kernel.is_default for kernel in box.kernels.list()] == [True, False]
    assert other.info().execution_count == 1
    other.run("y = 2")
    assert other.variables()["y"].repr == "2"
    assert other.restart().restarts == 1
    assert other.run("'y' in globals()").text == "False"
    box.kernels.get(other.id).delete()
    assert len(box.kernels.list()) == 1
    with pytest.raises(errors.IsDefault):
        box.kernels.get(box.kernels.list()[0].id).delete()


def test_questions(box: Any) -> None:
    box.run("marker = 1\ndef documented():\n    'Its words.'")
    assert "marker" in box.complete("mark").matches
    assert (box.complete("mark + 1", cursor=4).start, box.complete("mark").end) == (0, 4)
    found = box.inspect("documented")
    assert found.found and "Its words." in found.text
    assert not box.inspect("nothing_of_that_name").found


def test_restart(box: Any) -> None:
    box.run("x = 1")
    box.restart()
    assert box.run("'x' in globals()").text == "False"
    result = box.run("import os; os._exit(3)")
    assert result.status == "killed" and box.run("1").kernel_restarted


def test_large_files_at_the_start(sdk: World, client: Any, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"y" * (3 << 20))
    files = {"big": tmp_path / "big", "small": "s"}
    with sdk.Sandbox.create(profile="base", files=files, client=client) as box:
        assert box.run("import os; os.path.getsize('big'), open('small').read()").text == (
            f"({3 << 20}, 's')"
        )


def test_several_threads_use_one_sandbox(live: Any) -> None:
    import cloche

    with cloche.Sandbox.create(profile="base") as box:
        box.run("total = 0")

        def add() -> None:
            for _ in range(5):
                box.run("total += 1").check()

        threads = [threading.Thread(target=add) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert box.run("total").text == "20"


def test_an_interrupt_from_another_thread(live: Any) -> None:
    import cloche

    with cloche.Sandbox.create(profile="base") as box:
        threading.Thread(target=lambda: eventually(box.interrupt)).start()
        assert box.run("while True: pass").status == "interrupted"


def test_a_port_and_directories_of_its_own(sdk: World, client: Any) -> None:
    box = sdk.Sandbox.create(profile="base", client=client, listen=True)
    try:
        assert box.info().port > 0 and box.info().binds == []
    finally:
        box.delete()
    binds = [{"host": "/srv", "path": "data"}]
    with pytest.raises(errors.BindNotAllowed, match="/srv"):
        sdk.Sandbox.create(profile="base", client=client, binds=binds)
