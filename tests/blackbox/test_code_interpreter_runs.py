"""The Code Interpreter API: how programs run, what they print, and streams."""

from __future__ import annotations

import pytest

from code_interpreter import SLEEP, paths, run_stream
from harness import Service
from http_client import Event, Stream, download, execute, post


def said(events: list[Event], name: str) -> str:
    return "".join(
        e.data["data"] for e in events if e.type == "output" and e.data["stream"] == name
    )


# ---- execution ----


@pytest.mark.parametrize(
    "code,stdout",
    [
        ("1+1\n2+2", "4\n"),
        ("'a'", "'a'\n"),
        ("x=3; x", "3\n"),
        ("if True:\n 7", ""),
        ("None", ""),
        ("print(1)", "1\n"),
        ("x = 5", ""),
        ("tree = 1\n2", "2\n"),
        ("code = 1\nast = 2\ncode + ast", "3\n"),
        ("__name__", "'__main__'\n"),
        (
            "from __future__ import annotations\ndef f(x: nobody): pass\nf.__annotations__['x']",
            "'nobody'\n",
        ),
    ],
)
def test_the_last_line_is_shown_as_a_prompt_would(service: Service, code: str, stdout: str) -> None:
    result = execute(service.port, code)
    assert (result["stdout"], result["exit_code"]) == (stdout, 0), result["stderr"]


def test_nothing_is_shown_when_it_is_not_asked_for(service: Service) -> None:
    result = execute(service.port, "x = 3\nx", last_line_interactive=False)
    assert (result["stdout"], result["exit_code"]) == ("", 0)


@pytest.mark.parametrize("flag", [True, False])
def test_an_exception_ends_with_one_and_a_traceback(service: Service, flag: bool) -> None:
    result = execute(service.port, "print('a')\n\n1/0", last_line_interactive=flag)
    assert (result["exit_code"], result["stdout"]) == (1, "a\n")
    assert result["stderr"].startswith("Traceback (most recent call last):\n")
    assert result["stderr"].endswith("ZeroDivisionError: division by zero\n")
    assert "line 3, in <module>" in result["stderr"]
    if not flag:
        assert 'File "/workspace/__main__.py", line 3' in result["stderr"]


@pytest.mark.parametrize("flag", [True, False])
def test_a_syntax_error_ends_with_one(service: Service, flag: bool) -> None:
    result = execute(service.port, "print(1)\nx = = 1", last_line_interactive=flag)
    assert (result["exit_code"], result["stdout"]) == (1, "")
    assert "SyntaxError" in result["stderr"]


@pytest.mark.parametrize(
    "code,status",
    [
        ("import sys; sys.exit(3)", 3),
        ("import sys; sys.exit()", 0),
        ("import sys; sys.exit(0)", 0),
        ("import sys; sys.exit('why')", 1),
        ("import sys; sys.exit(-1)", 255),
        ("raise SystemExit(256)", 0),
        ("import os; os._exit(7)", 7),
        ("import os; os.kill(os.getpid(), 9)", 137),
        ("import os; os.kill(os.getpid(), 15)", 143),
        ("import os; os.abort()", 134),
    ],
)
def test_the_exit_code_is_the_shells(service: Service, code: str, status: int) -> None:
    result = execute(service.port, code)
    assert (result["exit_code"], result["timed_out"]) == (status, False)


def test_too_much_memory_is_137(service: Service) -> None:
    result = execute(service.port, "x = b'x' * (1 << 30)", timeout_ms=60000)
    assert (result["exit_code"], result["timed_out"]) == (137, False)


def test_too_much_cpu_is_137(service: Service) -> None:
    code = "while True: pass"
    result = execute(service.port, code, timeout_ms=60000, limits={"cpu_seconds": 1})
    assert (result["exit_code"], result["timed_out"]) == (137, False)


def test_a_program_out_of_time_keeps_what_it_did(service: Service) -> None:
    code = (
        "import sys\nprint('out')\nprint('err', file=sys.stderr)\n"
        "open('f', 'w').write('data')\n" + SLEEP
    )
    result = execute(service.port, code, timeout_ms=1500)
    assert (result["timed_out"], result["exit_code"]) == (True, None)
    assert (result["stdout"], result["stderr"]) == ("out\n", "err\n")
    assert paths(result) == ["f"]
    assert download(service.port, result["files"][0]["file_id"]) == b"data"


def test_where_the_program_is_and_what_it_is_told(service: Service) -> None:
    code = (
        "import os, sys\nprint(os.getcwd(), sys.argv, __file__, os.path.exists(__file__))\n"
        "names = 'PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONIOENCODING MPLCONFIGDIR'\n"
        "print([os.environ.get(name) for name in names.split()])\nprint(sys.stdout.encoding)"
    )
    assert execute(service.port, code, last_line_interactive=False)["stdout"] == (
        "/workspace ['/workspace/__main__.py'] /workspace/__main__.py True\n"
        "['1', '1', 'utf-8', '/tmp/matplotlib']\nutf-8\n"
    )


def test_nothing_stays_from_one_program_to_the_next(service: Service) -> None:
    execute(service.port, "open('a', 'w'); open('/tmp/b', 'w'); import builtins; builtins.x = 1")
    code = "import os, builtins; print(os.listdir(), os.listdir('/tmp'), hasattr(builtins, 'x'))"
    result = execute(service.port, code, last_line_interactive=True)
    assert "'a'" not in result["stdout"] and "'b'" not in result["stdout"]
    assert result["stdout"].endswith("False\n")


# ---- output ----


def test_too_much_output_ends_with_a_mark(service: Service) -> None:
    code = "import sys\nprint('x' * 1000)\nprint('y' * 1000, file=sys.stderr)"
    result = execute(service.port, code, limits={"output_bytes": 100})
    assert result["stdout"] == "x" * 68 + "\n...[truncated]"
    assert result["stderr"] == "y" * 68 + "\n...[truncated]"
    assert len(result["stdout"]) == 83


def test_output_up_to_the_limit_is_whole(service: Service) -> None:
    result = execute(service.port, "print('x' * 99)", limits={"output_bytes": 100})
    assert result["stdout"] == "x" * 99 + "\n"


def test_a_character_cut_in_two_is_replaced(service: Service) -> None:
    result = execute(service.port, "print('é' * 100)", limits={"output_bytes": 101})
    assert result["stdout"] == "é" * 34 + "\ufffd\n...[truncated]"


def test_a_stream_that_is_cut_has_no_mark(service: Service) -> None:
    _, events = run_stream(service, "print('x' * 1000)", limits={"output_bytes": 100})
    assert said(events, "stdout") == "x" * 100
    assert events[-1].type == "result"


def test_bytes_that_are_no_text_are_replaced(service: Service) -> None:
    code = "import os; n = os.write(1, b'a\\xffb\\x00c')"
    assert execute(service.port, code)["stdout"] == "a\ufffdb\0c"
    _, events = run_stream(service, code)
    assert said(events, "stdout") == "a\ufffdb\0c"


# ---- streams ----


def test_a_stream_has_the_headers_of_the_code_interpreter(service: Service) -> None:
    reply, _ = run_stream(service, "1")
    assert reply.status == 200
    assert reply.header("content-type") == "text/event-stream; charset=utf-8"
    assert reply.header("cache-control") == "no-cache"
    assert reply.header("x-accel-buffering") == "no"
    assert (reply.header("connection") or "keep-alive").lower() == "keep-alive"


def test_a_stream_ends_with_one_result(service: Service) -> None:
    code = (
        "import sys\nprint('out')\nprint('err', file=sys.stderr)\n"
        "open('f', 'w').write('x')\nsys.exit(4)"
    )
    _, events = run_stream(service, code)
    assert [e.type for e in events].count("result") == 1
    assert (said(events, "stdout"), said(events, "stderr")) == ("out\n", "err\n")
    result = events[-1]
    assert result.type == "result"
    assert list(result.data)[:4] == ["exit_code", "timed_out", "duration_ms", "files"]
    assert "stdout" not in result.data and "stderr" not in result.data
    assert (result.data["exit_code"], result.data["timed_out"]) == (4, False)
    assert download(service.port, result.data["files"][0]["file_id"]) == b"x"


def test_a_stream_is_framed_as_its_readers_expect(service: Service) -> None:
    body = {"code": "import os; n = os.write(1, b'a b\\n')"}
    reply = post(service.port, "/v1/execute/stream", body)
    frames = reply.body.decode().split("\n\n")
    # The two lines that clients know; ours, which says where to resume, comes behind them.
    first = 'event: output\ndata: {"stream":"stdout","data":"a b\\n"}\nid: 2'
    assert frames[0] == first
    assert frames[1].startswith("event: result\ndata: {") and "\n" not in frames[1][15:]
    assert frames[2:] == [""]


def test_a_silent_program_sends_only_its_result(service: Service) -> None:
    _, events = run_stream(service, "pass")
    assert [e.type for e in events] == ["result"]


def test_a_stream_that_times_out_says_so_in_its_result(service: Service) -> None:
    _, events = run_stream(service, "print('a')\n" + SLEEP, timeout_ms=1500)
    assert said(events, "stdout") == "a\n"
    assert (events[-1].data["timed_out"], events[-1].data["exit_code"]) == (True, None)


def test_output_comes_while_the_program_runs(service: Service) -> None:
    """The program waits for as long as it may; its first line is here long before that."""
    body = {"code": "import os; n = os.write(1, b'first\\n')\n" + SLEEP, "timeout_ms": 60000}
    with Stream(service.port, "POST", "/v1/execute/stream", body) as stream:
        first = next(stream.events())
        assert first.data == {"stream": "stdout", "data": "first\n"}


def test_line_separators_do_not_break_the_frames(service: Service) -> None:
    code = "print('a\\x85b\\u2028c\\u2029d\\x0be\\x0cf\\x1cg\\rh')"
    text = "a\x85b\u2028c\u2029d\x0be\x0cf\x1cg\rh\n"
    _, events = run_stream(service, code)
    assert said(events, "stdout") == text


def test_characters_are_never_cut_between_events(service: Service) -> None:
    code = (
        "import os\nfor _ in range(3):\n    for b in '€😀é'.encode():\n"
        "        os.write(1, bytes([b]))\nn = os.write(1, '€😀'.encode() * 10000)"
    )
    _, events = run_stream(service, code)
    assert said(events, "stdout") == "€😀é" * 3 + "€😀" * 10000
    assert all(e.data["data"] for e in events if e.type == "output")


def test_a_character_that_never_ends_is_replaced_at_the_end(service: Service) -> None:
    _, events = run_stream(service, "import os; n = os.write(1, b'a\\xe2\\x82')")
    assert said(events, "stdout") in ("a\ufffd", "a\ufffd\ufffd")
