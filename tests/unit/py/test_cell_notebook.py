"""What notebooks want of a kernel, and that nobody else gets it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from live_kernel import Kernel, Zygote


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    home = tmp_path_factory.mktemp("zygote") / "home"
    home.mkdir()
    zygote = Zygote(home)
    yield zygote
    zygote.close()


@pytest.fixture
def kernel(made: Zygote) -> Iterator[Kernel]:
    found = Kernel(made.chan)
    yield found
    found.close()


COMM = "from cell import comms\nc = comms.Comm('t', data={'a': 1}, buffers=[b'xy'])\n"


def test_colours_are_for_notebooks_only(kernel: Kernel) -> None:
    for _ in range(2):
        assert "\x1b[" in kernel.run("1 / 0", notebook=True).traceback
        assert "\x1b[" not in kernel.run("1 / 0").traceback


def test_a_notebook_gets_frames_whole(kernel: Kernel) -> None:
    lines = kernel.run("def f():\n    1 / 0\nf()", notebook=True).error["traceback"]
    assert len(lines) == 5 and lines[2].count("\n") == 4
    assert all("\n" not in line for line in kernel.run("1 / 0").error["traceback"])


def test_pages_are_payloads_or_displays(kernel: Kernel) -> None:
    (payload,) = kernel.run("len?", notebook=True).of("payload")
    assert payload["value"]["source"] == "page"
    native = kernel.run("len?")
    assert native.of("payload") == [] and len(native.of("display")) == 1


def test_expressions_are_asked_for_and_not_after_an_error(kernel: Kernel) -> None:
    wanted = {"two": "1 + 1", "bad": "1 / 0"}
    (event,) = kernel.run("x = 1", notebook=True, expressions=wanted).of("expressions")
    assert event["value"]["two"]["data"]["text/plain"] == "2"
    assert event["value"]["bad"]["ename"] == "ZeroDivisionError"
    assert kernel.run("1 / 0", notebook=True, expressions=wanted).of("expressions") == []
    assert kernel.run("x = 1", expressions=wanted).of("expressions") == []


def test_comms_speak_to_notebooks_only(kernel: Kernel) -> None:
    (event,) = kernel.run(COMM, notebook=True).of("comm")
    assert event["value"]["content"]["data"] == {"a": 1} and event["value"]["buffers"] == ["eHk="]
    assert kernel.run(COMM).of("comm") == []
    assert len(kernel.ask("comms")["result"]["comms"]) == 2
    assert kernel.ask("comms", target="other")["result"] == {"comms": {}}


def test_a_comm_says_only_what_is_json(kernel: Kernel) -> None:
    outcome = kernel.run(COMM + "c.send({'x': object()})", notebook=True)
    assert outcome.error["name"] == "TypeError" and len(outcome.of("comm")) == 1


def test_a_handler_that_fails_is_an_error_of_its_message(kernel: Kernel) -> None:
    kernel.run(COMM + "c.on_msg(lambda m: 1 / 0)", notebook=True)
    kernel.count += 1
    (name,) = kernel.ask("comms")["result"]["comms"]
    content = {"comm_id": name, "data": {}}
    kernel.send(op="comm", id="exe_2", kind="comm_msg", content=content, notebook=True)
    assert kernel.collect().error["name"] == "ZeroDivisionError"
    kernel.count += 1
    kernel.send(op="comm", id="exe_3", kind="comm_dance", content=content, notebook=True)
    assert kernel.collect().status == "error"
    assert kernel.run("'on'").text == "'on'"


def test_history_is_of_what_was_stored(kernel: Kernel) -> None:
    for code in ("a = 1", "b = 2", "a = 1"):
        kernel.run(code)
    kernel.run("c = 3", store_history=False)
    assert kernel.ask("history", kind="tail", n=2)["result"]["history"] == [
        [1, 2, "b = 2"],
        [1, 3, "a = 1"],
    ]
    found = kernel.ask("history", kind="search", pattern="a*", unique=True)["result"]["history"]
    assert found == [[1, 3, "a = 1"]]
    assert kernel.ask("history", kind="range", session=7)["result"]["history"] == []
    assert kernel.ask("history", kind="tail", n=1, output=True)["result"]["history"] == [
        [1, 3, ["a = 1", None]]
    ]


@pytest.mark.parametrize(
    "code, status",
    [("1", "complete"), ("if 1:", "incomplete"), ("(", "incomplete"), ("1 +* 2", "invalid")],
)
def test_whether_code_is_complete(kernel: Kernel, code: str, status: str) -> None:
    assert kernel.ask("is_complete", code=code)["result"]["status"] == status


def test_nobody_who_answers(kernel: Kernel) -> None:
    assert kernel.run("input()", notebook=True).error["name"] == "StdinNotImplementedError"
    assert kernel.run("input()").error["name"] == "EOFError"
