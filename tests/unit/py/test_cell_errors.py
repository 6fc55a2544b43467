"""Live kernels: what a cell says when it fails, asks or is interrupted."""

from __future__ import annotations

import os
from typing import Any

import pytest

from live_kernel import Kernel, drain, read_line


# ---- errors ----


def test_an_error_shows_the_cell_and_nothing_of_ours(kernel: Kernel) -> None:
    outcome = kernel.run("def f(n):\n    return 1 / n\n\nprint('before')\nf(0)")
    assert (outcome.status, outcome.stdout, outcome.stderr) == ("error", "before\n", "")
    assert (outcome.error["name"], outcome.error["value"]) == (
        "ZeroDivisionError",
        "division by zero",
    )
    text = outcome.traceback
    assert "Cell In" in text and ", line 5" in text and "----> 2     return 1 / n" in text
    assert "\x1b" not in text and "cell/" not in text and "interactiveshell" not in text
    assert all("\n" not in line for line in outcome.error["traceback"])


def test_the_error_is_of_the_right_cell(kernel: Kernel) -> None:
    kernel.run("def f():\n    raise KeyError('k')")
    text = kernel.run("f()").traceback
    assert "In [1], line 2" in text.replace("In[", "In [") and "In [2]" in text.replace(
        "In[", "In ["
    )


def test_a_syntax_error(kernel: Kernel) -> None:
    outcome = kernel.run("x = = 1")
    assert (outcome.status, outcome.error["name"]) == ("error", "SyntaxError")
    assert "x = = 1" in outcome.traceback and outcome.error["traceback"][-1].startswith(
        "SyntaxError"
    )


@pytest.mark.parametrize(
    "code, name",
    [
        ("%nomagic", "UsageError"),
        ("return 1", "SyntaxError"),
        ("  x = 1\n y = 2", "IndentationError"),
        ("bytearray(1 << 60)", "MemoryError"),
        ("def r():\n    return r()\nr()", "RecursionError"),
        ("raise SystemError('x')", "SystemError"),
        ("import asyncio\nawait asyncio.sleep(0)\n1 / 0", "ZeroDivisionError"),
        ("raise ExceptionGroup('g', [ValueError(1)])", "ExceptionGroup"),
        ("eval('(' * 300)", "SyntaxError"),
    ],
)
def test_errors_by_name(kernel: Kernel, code: str, name: str) -> None:
    outcome = kernel.run(code)
    assert (outcome.status, outcome.error["name"]) == ("error", name)
    assert outcome.error["traceback"]
    assert kernel.run("'after'").text == "'after'"


def test_causes_are_told(kernel: Kernel) -> None:
    text = kernel.run(
        "try:\n    {}['k']\nexcept KeyError as e:\n    raise ValueError from e"
    ).traceback
    assert "KeyError" in text and "direct cause" in text


@pytest.mark.parametrize(
    "body",
    [
        "def __str__(self): raise ValueError",
        "def __str__(self): return 5",
        "def __str__(self): raise KeyboardInterrupt",
        "def __str__(self): raise SystemExit",
        "def __str__(self): return str(self)",
        "def __repr__(self): 1 / 0",
        "__module__ = property(lambda self: 1 / 0)",
        "def _render_traceback_(self): return [5]",
        "def _render_traceback_(self): 1 / 0",
        "def __getattribute__(self, name): raise RuntimeError(name)",
    ],
)
def test_exceptions_that_cannot_be_shown(kernel: Kernel, body: str) -> None:
    outcome = kernel.run(f"class Bad(Exception):\n    {body}\nraise Bad('x')")
    assert (outcome.status, outcome.error["name"] in ("Bad", "RuntimeError")) == ("error", True)
    assert kernel.run("1").text == "1"


def test_an_error_inside_a_library_shows_its_lines(kernel: Kernel) -> None:
    text = kernel.run(
        "import decimal, argparse\nargparse.ArgumentParser().add_argument()"
    ).traceback
    assert "argparse.py:" in text and "---> " in text and "add_argument" in text


def test_a_long_message_is_cut(kernel: Kernel) -> None:
    outcome = kernel.run("raise ValueError('x' * 10_000_000 + '\\0')")
    assert len(outcome.error["value"]) == 8000 and len(outcome.traceback) < 50_000
    many = kernel.run("raise ValueError('\\n' * 100_000)")
    assert len(many.error["traceback"]) <= 201


@pytest.mark.parametrize(
    "body, shown",
    [
        ("1 / 0", "ZeroDivisionError"),
        ("return repr(self)", "RecursionError"),
        ("return 5", "TypeError"),
    ],
)
def test_a_failing_repr_is_text_and_not_the_cells_error(
    kernel: Kernel, body: str, shown: str
) -> None:
    outcome = kernel.run(f"class A:\n    def __repr__(self): {body}\nx = A()\nx")
    assert (outcome.status, outcome.of("error")) == ("ok", [])
    assert shown in outcome.stderr
    assert kernel.run("1").text == "1"


def test_a_failing_repr_is_told_at_once(kernel: Kernel) -> None:
    code = "class A:\n    def __repr__(self): 1 / 0\ndisplay(A())\ninput()"
    kernel.start(code, allow_stdin=True)
    asked = kernel.receive()
    assert "ZeroDivisionError" in drain(kernel.stderr)
    kernel.send(op="input", id=asked["id"], value="")
    assert kernel.collect(asked).status == "ok"


def test_a_nested_error_is_text(kernel: Kernel) -> None:
    outcome = kernel.run("get_ipython().run_cell('1 / 0')\n'went on'")
    assert (outcome.status, outcome.text) == ("ok", "'went on'")
    assert "ZeroDivisionError" in outcome.stderr


@pytest.mark.parametrize(
    "code, value",
    [("exit(3)", "3"), ("import sys\nsys.exit()", ""), ("import sys\nsys.exit('why')", "why")],
)
def test_a_status_ends_the_cell_only(kernel: Kernel, code: str, value: str) -> None:
    kernel.run("x = 1")
    outcome = kernel.run(code)
    assert (outcome.status, outcome.error["name"]) == ("error", "SystemExit")
    assert (outcome.error["value"], outcome.stderr) == (value, "")
    assert kernel.run("x").text == "1"


@pytest.mark.parametrize("code", ["exit", "quit()", "exit()", "get_ipython().ask_exit()"])
def test_exit_ends_the_kernel_after_the_cell(kernel: Kernel, code: str) -> None:
    outcome = kernel.run(f"{code}\nprint('after')" if "(" in code else code, notebook=True)
    assert outcome.status == "ok"
    assert [event["value"]["source"] for event in outcome.of("payload")] == ["ask_exit"]
    assert kernel.left() == 0
    assert outcome.stdout == ("after\n" if "(" in code else "")


def test_exit_may_keep_the_kernel(kernel: Kernel) -> None:
    assert kernel.run("x = 1\nexit(keep_kernel=True)").status == "ok"
    assert kernel.run("x").text == "1"


# ---- input ----


def test_input_is_answered(kernel: Kernel) -> None:
    name = kernel.start("a = input('Name? ')\nb = input()\n(a, b)", allow_stdin=True)
    asked: dict[str, Any] = {"ev": "input", "id": name, "password": False}
    assert kernel.receive() == {**asked, "prompt": "Name? "}
    kernel.send(op="input", id=name, value="Ada")
    assert kernel.receive() == {**asked, "prompt": ""}
    kernel.send(op="input", id="exe_of_before", value="wrong")
    kernel.send(op="input", id=name, value="")
    assert kernel.collect().text == "('Ada', '')"


def test_getpass_is_answered(kernel: Kernel) -> None:
    name = kernel.start("import getpass\ngetpass.getpass()", allow_stdin=True)
    assert kernel.receive() == {"ev": "input", "id": name, "prompt": "Password: ", "password": True}
    kernel.send(op="input", id=name, value="secret")
    assert kernel.collect().text == "'secret'"


def test_input_that_nobody_answers(kernel: Kernel) -> None:
    outcome = kernel.run("input()")
    assert (outcome.status, outcome.error["name"], outcome.of("input")) == ("error", "EOFError", [])
    assert "channel" not in outcome.traceback
    name = kernel.start("input()", allow_stdin=True)
    asked = kernel.receive()
    kernel.send(op="input", id=name, eof=True)
    assert kernel.collect(asked).error["name"] == "EOFError"


def test_requests_that_come_during_input_wait_for_its_end(kernel: Kernel) -> None:
    name = kernel.start("x = input()", allow_stdin=True)
    asked = kernel.receive()
    kernel.send(op="complete", id="c", code="impor", cursor=5)
    kernel.send(op="input", id=name, value="1")
    assert kernel.collect(asked).status == "ok"
    assert kernel.receive()["result"]["matches"] == ["import"]


def test_input_is_interrupted_and_a_late_answer_is_nobodys(kernel: Kernel) -> None:
    name = kernel.start("input()", allow_stdin=True)
    asked = kernel.receive()
    kernel.interrupt()
    assert kernel.collect(asked).status == "interrupted"
    kernel.send(op="input", id=name, value="late")
    assert kernel.run("1").text == "1"


def test_input_in_a_thread_is_refused(kernel: Kernel) -> None:
    code = """
import threading

pytest_plugins = ["cell_kernel"]
def ask():
    global said
    try:
        input()
    except EOFError as exc:
        said = str(exc)
thread = threading.Thread(target=ask)
thread.start()
thread.join()
said
"""
    assert "main thread" in kernel.run(code, allow_stdin=True).text


# ---- interrupts ----


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time\ntime.sleep(1000)",
        "import asyncio\nawait asyncio.sleep(1000)\nx = 'late'",
        "import asyncio\nawait asyncio.sleep(0)\nwhile True: pass",
        "class A:\n    def __repr__(self):\n        while True: pass\nA()",
        "import threading\nthreading.Event().wait()",
        "[i for i in iter(int, 1)]",
    ],
)
def test_an_interrupt_ends_the_cell_and_keeps_the_state(kernel: Kernel, code: str) -> None:
    kernel.run("x = 5")
    kernel.start("display('go')\n" + code)
    started = kernel.receive()
    kernel.interrupt()
    outcome = kernel.collect(started)
    assert (outcome.status, outcome.error["name"]) == ("interrupted", "KeyboardInterrupt")
    assert "KeyboardInterrupt" in outcome.traceback
    assert kernel.run("x").text == "5"
    assert kernel.run("import asyncio\nawait asyncio.sleep(0)\nx").text == "5"


def test_an_interrupted_await_does_not_go_on_later(kernel: Kernel) -> None:
    kernel.run("import asyncio\nx, event = 5, asyncio.Event()")
    kernel.start("display('go')\nawait event.wait()\nx = 'late'")
    started = kernel.receive()
    kernel.interrupt()
    assert kernel.collect(started).error["name"] == "KeyboardInterrupt"
    assert kernel.run("event.set()\nfor _ in range(9): await asyncio.sleep(0)\nx").text == "5"


def test_an_interrupt_between_cells_ends_the_task_at_hand(kernel: Kernel) -> None:
    outcome = kernel.run(
        "import asyncio\nasync def hog():\n    print('hogs', flush=True)\n    while True: pass\n"
        "async def nap():\n    await asyncio.sleep(1000)\n"
        "other, task = [asyncio.create_task(f()) for f in (nap, hog)]"
    )
    assert (outcome.stdout or read_line(kernel.stdout)) == "hogs\n"
    kernel.interrupt()
    assert kernel.ask("sync")["ok"]
    outcome = kernel.run("task.done(), other.done()")
    assert outcome.text == "(True, False)" and "KeyboardInterrupt" in outcome.stderr


def test_a_cell_behind_a_task_that_hogs_is_interrupted_with_it(kernel: Kernel) -> None:
    outcome = kernel.run(
        "import asyncio\nasync def hog():\n    print('hogs', flush=True)\n    while True: pass\n"
        "task = asyncio.create_task(hog())"
    )
    assert (outcome.stdout or read_line(kernel.stdout)) == "hogs\n"
    kernel.start("1")
    kernel.interrupt()
    assert kernel.collect().status == "interrupted"


@pytest.mark.parametrize(
    "code",
    [
        "await asyncio.gather(hog(), asyncio.sleep(1000))",
        "task = asyncio.create_task(hog())\nawait asyncio.sleep(1000)",
        "asyncio.get_running_loop().call_soon(block)\nawait asyncio.sleep(1000)",
    ],
)
def test_what_keeps_the_loop_from_a_cell_is_interrupted_too(kernel: Kernel, code: str) -> None:
    kernel.run(
        "import asyncio\ndef block():\n    print('hogs', flush=True)\n    while True: pass\n"
        "async def hog(): block()"
    )
    kernel.start(code)
    assert read_line(kernel.stdout) == "hogs\n"
    kernel.interrupt()
    assert kernel.collect().status == "interrupted"
    assert kernel.run("await asyncio.sleep(0)\n5").text == "5"


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "Z"


def test_an_interrupt_ends_a_command_with_its_children(kernel: Kernel) -> None:
    kernel.start("!sleep 60 & echo $!; wait; echo no")
    pid = int(read_line(kernel.stdout))
    kernel.interrupt()
    outcome = kernel.collect()
    assert (outcome.status, outcome.stdout) == ("interrupted", "")
    while not is_gone(pid):  # it was told to; the test's own limit is for one that is not
        os.sched_yield()


def test_a_cell_may_catch_its_interrupt(kernel: Kernel) -> None:
    kernel.start(
        "try:\n    display(1)\n    while True: pass\nexcept KeyboardInterrupt:\n    x = 'c'\nx"
    )
    started = kernel.receive()
    kernel.interrupt()
    outcome = kernel.collect(started)
    assert (outcome.status, outcome.text) == ("ok", "'c'")


def test_raising_one_is_the_same(kernel: Kernel) -> None:
    assert kernel.run("raise KeyboardInterrupt").status == "interrupted"


def test_a_cells_own_handler_ends_with_it(kernel: Kernel) -> None:
    kernel.run("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)")
    kernel.start("display(1)\nwhile True: pass")
    started = kernel.receive()
    kernel.interrupt()
    assert kernel.collect(started).status == "interrupted"


def test_a_cell_that_stops_the_loop_does_no_harm(kernel: Kernel) -> None:
    kernel.run("import asyncio\nloop = asyncio.get_running_loop()\n_ = loop.call_soon(loop.stop)")
    assert kernel.run("await asyncio.sleep(0.01)\n5").text == "5"
    assert kernel.run("loop.stop()\nawait asyncio.sleep(0.01)\n6").text == "6"
    mine = kernel.run("await asyncio.sleep(0)\nraise RuntimeError('mine')")
    assert mine.error["value"] == "mine"


def test_an_interrupt_of_nothing_is_harmless(kernel: Kernel) -> None:
    kernel.run("x = 1")
    for _ in range(50):
        kernel.interrupt()
    assert kernel.run("pass").status in ("ok", "interrupted")  # the last may still be on its way
    assert kernel.run("x").text == "1"


def test_interrupts_at_any_moment_leave_one_done_each(kernel: Kernel) -> None:
    """A thread of the kernel sends them, so that they come in the middle of everything."""
    kernel.run(
        "import os, random, signal, threading\nstop, x = threading.Event(), 1\n"
        "def send():\n"
        "    while not stop.wait(random.random() / 500): os.kill(os.getpid(), signal.SIGINT)\n"
        "thread = threading.Thread(target=send)"
    )
    kernel.run("thread.start()")
    cells = ["sum(range(5000))\nx", "import asyncio\nawait asyncio.sleep(0.001)", "!true", "1 / 0"]
    statuses = [kernel.run(cells[turn % 4]).status for turn in range(400)]
    assert set(statuses) == {"ok", "error", "interrupted"}
    while kernel.run("stop.set()\nthread.join()").status != "ok":
        pass
    for code in ("x", "import asyncio\nawait asyncio.sleep(0)\nx"):
        while (outcome := kernel.run(code)).status == "interrupted":  # the last may be this one's
            pass
        assert outcome.text == "1"
