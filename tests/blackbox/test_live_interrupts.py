"""Live kernels: interrupts, input() and the event loop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness import LiveService, eventually, settled
from live import Box, Client, error
from live_kernels import SLEEP, dead, fresh, keep

STUBBORN = """
import time
said = False
while True:
    try:
        if not said: print('runs', flush=True)
        said = True
        time.sleep(1000)
    except KeyboardInterrupt:
        print('not me', flush=True)
"""


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    """One whose grace period is short, but not for a cell that a busy machine lets wait."""
    options = ("--profiles", "base", "--live-grace-ms", "2000")
    yield from settled(LiveService(tmp_path_factory.mktemp("quick"), *options))


@pytest.fixture
def box(quick: LiveService) -> Iterator[Box]:
    with Client(quick.port).box() as made:
        yield made


# ---- interrupts ----


def test_an_interrupt_keeps_the_state(box: Box) -> None:
    keep(box)
    with box.stream(SLEEP) as events:
        events.printed("runs")
        assert box.do("/interrupt") == {"interrupted": True}
        end = events.until("end").data
    assert (end["status"], end["exit_code"]) == ("interrupted", 130)
    assert end["error"]["name"] == "KeyboardInterrupt"
    result = box.run("x")
    assert (result["text"], result["kernel_restarted"]) == ("1", False)


def test_locks_that_an_interrupt_left_hold_up_nothing(box: Box) -> None:
    """Of IPython's history, which each cell goes through: it may come just there."""
    locks = "m.save_flag._cond, m.db_input_cache_lock, m.db_output_cache_lock"
    box.run(f"m = get_ipython().history_manager\nfor lock in ({locks}): lock.acquire()")
    assert box.run("1", timeout_ms=20_000)["text"] == "1"


def test_an_interrupt_of_nothing(box: Box) -> None:
    assert box.do("/interrupt") == {"interrupted": False}
    assert box.text("1") == "1"


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import asyncio\nawait asyncio.sleep(1000)",
        "!sleep 1000",
        "import os\nos.system('sleep 1000')",
        "import subprocess\nsubprocess.run(['sleep', '1000'])",
        "import threading\nthreading.Event().wait()",
    ],
)
def test_what_can_be_interrupted(box: Box, code: str) -> None:
    box.run("x = 5")
    with box.stream(f"print('runs', flush=True)\n{code}") as events:
        events.printed("runs")
        box.do("/interrupt")
        assert events.until("end").data["status"] == "interrupted"
    assert box.text("x") == "5"


def test_os_system_is_as_ever(box: Box) -> None:
    assert box.text("import os\nos.system('exit 3'), os.system(b'kill -9 $$')") == "(768, 9)"
    code = """
r, w = os.pipe()
os.set_inheritable(w, True)
if os.fork() == 0:
    os._exit(os.system('exit 4') >> 8)
os.waitstatus_to_exitcode(os.wait()[1]), os.system(f'echo pipe >&{w}'), os.read(r, 9)
"""
    assert box.text(code) == "(4, 0, b'pipe\\n')"
    assert box.run("os.system(5)")["error"]["name"] == "TypeError"


def test_a_cell_that_catches_the_interrupt_ends_as_it_likes(box: Box) -> None:
    code = (
        "import time\ntry:\n    print('runs', flush=True)\n    time.sleep(99)\n"
        "finally:\n    print('bye')"
    )
    with box.stream(code) as events:
        events.printed("runs")
        box.do("/interrupt")
        events.printed("bye")
        assert events.until("end").data["status"] == "interrupted"


def test_a_cell_that_ignores_it_is_killed(box: Box) -> None:
    keep(box)
    with box.stream(STUBBORN) as events:
        events.printed("runs")
        box.do("/interrupt")
        events.printed("not me")
        end = events.until("end").data
    dead(end, "killed", "ignored the interrupt", "variables are lost")
    assert end["signal"] == 9
    fresh(box)


def test_a_timeout_is_an_interrupt_first(box: Box) -> None:
    keep(box)
    result = box.run("x = 2\n" + SLEEP, timeout_ms=2000)
    assert (result["status"], result["timed_out"], result["limit_hit"]) == ("timeout", True, "time")
    assert result["exit_code"] is None and result["error"]["name"] == "KeyboardInterrupt"
    assert result["stdout"] == "runs\n"
    assert box.text("x") == "2"


def test_a_timeout_that_is_ignored_kills(box: Box) -> None:
    keep(box)
    result = box.run(STUBBORN, timeout_ms=2000)
    dead(result, "timeout", "2000 ms", "ignored the interrupt")
    assert result["timed_out"] is True and "not me" in result["stdout"]
    fresh(box)


def test_cpu_time_is_counted_per_execution(box: Box) -> None:
    burn = "import time\nt = time.process_time()\nwhile time.process_time() - t < %s: pass"
    for _ in range(3):
        assert box.run(burn % 0.5, cpu_seconds=1)["status"] == "ok"
    result = box.run(burn % 1000, cpu_seconds=1)
    assert (result["status"], result["limit_hit"]) == ("interrupted", "cpu")
    assert box.run("1")["status"] == "ok"


# ---- input() ----


def test_input_is_answered(box: Box) -> None:
    with box.stream("name = input('Name? ')\nprint('hello', name)") as events:
        assert events.until("input").data == {"prompt": "Name? ", "password": False}
        box.do("/stdin", value="Wörld")
        events.printed("hello Wörld")
    with box.stream("import getpass\np = getpass.getpass()\nlen(p)") as events:
        assert events.until("input").data == {"prompt": "Password: ", "password": True}
        box.do("/stdin", value="secret")
        assert events.until("result").data["data"]["text/plain"] == "6"


def test_input_at_the_end_of_the_file(box: Box) -> None:
    with box.stream("input()") as events:
        events.until("input")
        box.do("/stdin", eof=True)
        assert events.until("end").data["error"]["name"] == "EOFError"


def test_nobody_waits_for_input(box: Box) -> None:
    error(box.ask("POST", "/stdin", {"value": "x"}), 409, "not_waiting")
    with box.stream(SLEEP) as events:
        events.printed("runs")
        error(box.ask("POST", "/stdin", {"value": "x"}), 409, "not_waiting")
        box.do("/interrupt")


def test_input_that_nobody_will_answer(box: Box) -> None:
    result = box.run("input('?')")
    assert result["error"]["name"] == "EOFError" and "nobody answers" in result["error"]["value"]
    with box.stream("input()", allow_stdin=False) as events:
        assert events.until("end").data["error"]["name"] == "EOFError"
    assert box.text("import sys\nsys.stdin.read()") == "''"


def test_input_that_came_with_the_request(box: Box) -> None:
    code = (
        "a = input('? ')\nb = input()\ntry:\n    input()\nexcept EOFError:\n    c = 'end'\na, b, c"
    )
    assert box.text(code, stdin="one\ntwo\n") == "('one', 'two', 'end')"
    assert box.text(code, stdin="one\n\n") == "('one', '', 'end')"


def test_what_came_with_the_request_is_stdin(box: Box) -> None:
    text = "".join(f"line {i} é\n" for i in range(30_000)) + "last"
    assert box.run("import sys\nprint(sys.stdin.read(), end='')", stdin=text)["stdout"] == text
    assert box.text("sys.stdin.buffer.read()", stdin="a\nb") == "b'a\\nb'"
    assert box.text("sys.stdin.readlines()", stdin="a\n\nb") == "['a\\n', '\\n', 'b']"
    code = "input(), sys.stdin.readline(), input(), input(), sys.stdin.read(3), sys.stdin.read()"
    assert box.text(code, stdin="1\n2\n3\n4\n567\n8") == r"('1', '2\n', '3', '4', '567', '\n8')"
    assert box.text("sys.stdin.read(1)", stdin="left over") == "'l'"
    assert box.text("sys.stdin.read()", stdin="new") == "'new'"
    assert box.text("sys.stdin.read()") == "''"


def test_input_from_a_stdin_that_was_replaced(box: Box) -> None:
    box.run("import io, sys\nbefore, sys.stdin = sys.stdin, io.StringIO('one\\ntwo\\nthree')")
    result = box.run("input('? '), input()", stdin="other")
    assert (result["stdout"], result["text"]) == ("? ", "('one', 'two')")
    assert box.text("sys.stdin.read()") == "'three'"
    assert box.run("input()", stdin="x")["error"]["name"] == "EOFError"
    assert box.text("sys.stdin = before\ninput()", stdin="x") == "'x'"


def test_stdin_is_answered_line_by_line(box: Box) -> None:
    with box.stream("import sys\nprint([line for line in sys.stdin])") as events:
        for line in ("one", "two"):
            assert events.until("input").data == {"prompt": "", "password": False}
            box.do("/stdin", value=line)
        events.until("input")
        box.do("/stdin", eof=True)
        events.printed(r"['one\n', 'two\n']")


def test_an_input_that_waits_can_be_interrupted(box: Box) -> None:
    with box.stream("x = 1\ninput()") as events:
        events.until("input")
        box.do("/interrupt")
        assert events.until("end").data["status"] == "interrupted"
    error(box.ask("POST", "/stdin", {"value": "x"}), 409, "not_waiting")
    assert box.text("x") == "1"


# ---- the event loop: see tests/unit/py/test_cell_results.py ----

HOG = """
import asyncio
async def hog():
    open('hogs', 'w').close()
    while True: pass
task = asyncio.create_task(hog())
"""


def test_an_interrupt_between_cells_is_for_the_task_at_hand(box: Box) -> None:
    box.run(HOG)
    assert eventually(lambda: box.ask("GET", "/files/hogs").status == 200)
    assert box.do("/interrupt") == {"interrupted": False}  # no execution was
    result = box.run("task.done()")
    assert (result["text"], result["status"]) == ("True", "ok"), result
    assert "KeyboardInterrupt" in result["stderr"]
    assert box.do("/interrupt") == {"interrupted": False}
    assert box.text("1") == "1"


def test_a_task_that_hogs_takes_the_next_cell_with_it_and_not_the_kernel(box: Box) -> None:
    keep(box)
    box.run(HOG)
    assert eventually(lambda: box.ask("GET", "/files/hogs").status == 200)
    assert box.run("2", timeout_ms=500)["status"] == "timeout"
    assert box.text("x, task.done()") == "(1, True)"


def test_what_is_printed_between_cells_is_cut_and_says_so(box: Box) -> None:
    box.run(
        "import asyncio, os\nasync def f():\n"
        "    while not os.path.exists('go'): await asyncio.sleep(0.01)\n"
        "    print('a' * 100_000)\n"
        "    open('over', 'w').close()\ntask = asyncio.create_task(f())"
    )
    assert box.ask("PUT", "/files/go", "").status in (200, 201, 204)
    assert eventually(lambda: box.ask("GET", "/files/over").status == 200)
    printed = box.run("task.done()")["stdout"]
    assert printed.startswith("a" * 65536) and "bytes more were printed between" in printed


ASKS = """
while True:
    try:
        y = input()
        break
    except KeyboardInterrupt:
        print('again')
"""


def test_an_interrupt_at_the_prompt_of_a_debugger_ends_the_debugger(box: Box) -> None:
    """The rest of the cell runs, as in ipykernel."""
    keep(box)
    box.run("1 / 0")
    for code in ("import pdb\npdb.set_trace()\ny = 2", "breakpoint()\ny += 1", "%debug\ny += 1"):
        with box.stream(code, allow_stdin=True) as events:
            events.until("input")
            assert box.do("/interrupt") == {"interrupted": True}
            assert events.until("end").data["status"] == "ok"
    assert box.text("x, y") == "(1, 4)"


def test_who_asks_again_after_an_interrupt_goes_on(box: Box) -> None:
    with box.stream(ASKS, allow_stdin=True) as events:
        events.until("input")
        for _ in range(2):
            assert box.do("/interrupt") == {"interrupted": True}
            events.printed("again")
            events.until("input")
        box.do("/stdin", value="c")
        assert events.until("end").data["status"] == "ok"
    assert box.text("y") == "'c'"
    with box.stream(ASKS, allow_stdin=True, timeout_ms=500) as events:
        end = events.until("end").data
    assert (end["status"], end["error"]["name"]) == ("timeout", "EOFError")
    assert box.text("y") == "'c'"


def test_a_debugger_whose_time_is_up_ends_and_the_kernel_stays(box: Box) -> None:
    keep(box)
    result = box.run("import pdb\npdb.set_trace()\ny = 2", allow_stdin=True, timeout_ms=500)
    assert (result["status"], result["limit_hit"]) == ("timeout", "time"), result
    assert box.text("x") == "1"


def test_exit_gives_the_next_cell_a_new_kernel(box: Box) -> None:
    keep(box)
    result = box.run("exit()\nprint('after')")
    assert (result["status"], result["stdout"]) == ("ok", "after\n")
    fresh(box)
