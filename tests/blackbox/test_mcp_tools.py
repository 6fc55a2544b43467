"""MCP: run_python and run_shell, as models use them, in both eras of the protocol."""

from __future__ import annotations

import json
import re

import pytest

from harness import LiveService
from mcp_http import ERAS, MODERN, Mcp, file_uri

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(params=ERAS)
def mcp(request: pytest.FixtureRequest, live_service: LiveService) -> Mcp:
    return Mcp(live_service.port, request.param)


# ---------------------------------------------------------------------------- run_python


def test_state_stays_and_the_first_answer_says_that_there_is_none(mcp: Mcp) -> None:
    name = f"first-{mcp.era}"  # that no other test has used
    with mcp:
        first = mcp.python("x = 41", sandbox=name)
        assert first.texts.strip() == "[new sandbox: no variables yet]"
        assert mcp.value("print(x + 1)", sandbox=name) == "42"
        assert mcp.value("x", sandbox=name) == "41"


def test_streams_come_in_order_and_the_value_last(mcp: Mcp) -> None:
    code = "import sys\nfor i in range(3):\n    print(i); print('e', i, file=sys.stderr)\n'v'"
    with mcp:
        said = mcp.value(code).splitlines()
        assert [line for line in said if line[0] != "e"] == ["0", "1", "2", "'v'"]
        assert [line for line in said if line[0] == "e"] == ["e 0", "e 1", "e 2"]


def test_await_magics_and_commands_work(mcp: Mcp) -> None:
    with mcp:
        assert mcp.value("import asyncio\nawait asyncio.sleep(0, 7)") == "7"
        assert mcp.value("!echo $((1 + 1))") == "2"


def test_an_exception_is_an_error_with_what_was_printed_before(mcp: Mcp) -> None:
    with mcp:
        answer = mcp.python("print('before')\nnobody_knows")
        assert answer.is_error
        assert answer.text.startswith("before\n")
        assert "NameError: name 'nobody_knows' is not defined" in answer.text
        assert "2 nobody_knows" in answer.text, "the source line"
        assert "\x1b" not in json.dumps(answer.result)
        assert mcp.python("1/0").receipt["status"] == "error"


def test_a_long_error_keeps_both_ends(mcp: Mcp) -> None:
    with mcp:
        answer = mcp.python("print('first'); print('x' * 100000)\nraise ValueError('y' * 30000)")
        assert answer.is_error and len(answer.texts) <= 10000
        assert answer.text.startswith("first\n")
        assert "ValueError" in answer.text


def test_long_text_is_cut_in_the_middle_and_can_be_read(mcp: Mcp) -> None:
    with mcp:
        answer = mcp.python("for i in range(100000): print('line', i)")
        assert not answer.is_error and len(answer.texts) <= 30000
        assert answer.text.startswith("line 0\nline 1\n")
        assert "\nline 99999" in answer.text
        assert "left out" in answer.text
        (uri,) = (u for u in answer.links if u.startswith("cloche://execution/"))
        whole = mcp.resource(uri)
        assert whole["text"] == "".join(f"line {i}\n" for i in range(100000))
        assert uri in answer.text, "also for who sees no links"


def test_a_value_that_is_too_large_is_told(mcp: Mcp) -> None:
    note = "[what was shown here is too large to be kept: save it to a file]"
    large = "display('x' * 9_000_000)"
    with mcp:
        for code in (large, f"print('before'); {large}", f"print('a'); {large}; print('b')"):
            assert mcp.value(code).count(note) == 1
        assert mcp.value("1") == "1"


def test_a_million_small_prints_are_cut(mcp: Mcp) -> None:
    with mcp:
        answer = mcp.python(
            "import os\nfor i in range(3000000 // 70): os.write(1, b'x' * 69 + b'\\n')"
        )
        assert len(answer.texts) <= 30000 and not answer.is_error


def test_figures_are_images_and_no_text(mcp: Mcp) -> None:
    code = "import matplotlib.pyplot as p\nprint('a')\np.plot([1, 2])\np.show()"
    with mcp:
        answer = mcp.python(code)
        assert [image[:8] for image in answer.images] == [PNG]
        assert "<Figure" not in answer.texts and "a" in answer.text.splitlines()
        assert answer.of("image")[0]["mimeType"] == "image/png"


def test_images_of_pil_are_images(mcp: Mcp) -> None:
    code = "from PIL import Image\nImage.new('RGB', (4, 4), 'red')"
    with mcp:
        answer = mcp.python(code)
        assert [image[:8] for image in answer.images] == [PNG]
        assert "<PIL" not in answer.texts


def test_a_table_is_text(mcp: Mcp) -> None:
    with mcp:
        answer = mcp.python("import pandas\npandas.DataFrame({'a': [1, 2]})")
        assert answer.text.split() == ["a", "0", "1", "1", "2"]
        assert "<" not in answer.text


def test_of_many_images_the_rest_are_links(mcp: Mcp) -> None:
    code = "from PIL import Image\nfor i in range(10): display(Image.new('RGB', (4, 4)))"
    with mcp:
        answer = mcp.python(code)
        links = [uri for uri in answer.links if "/image/" in uri]
        assert len(answer.images) == 8 and len(links) == 2
        found = mcp.resource(links[0])
        assert found["mimeType"] == "image/png" and found["blob"].startswith("iVBORw0KGgo")


def test_a_bundle_that_lies_about_its_image_is_none(mcp: Mcp) -> None:
    code = (
        "from IPython.display import publish_display_data as p\n"
        "p({'image/png': 'bm8gaW1hZ2U=', 'text/plain': 'what'})\n"
        "p({'image/jpeg': '/9j/<script>', 'text/plain': 'else'})"
    )
    with mcp:
        answer = mcp.python(code)
        assert answer.images == [] and answer.text == "what\nelse"


def test_updates_and_clears_are_what_a_notebook_shows(mcp: Mcp) -> None:
    code = (
        "from IPython.display import display, clear_output\n"
        "print('gone'); clear_output()\n"
        "h = display('one', display_id=True); print('x'); h.update('two')"
    )
    with mcp:
        assert mcp.value(code) == "'two'\nx"


def test_terminal_codes_are_left_out_and_bars_are_one_line(mcp: Mcp) -> None:
    code = (
        r"print('\x1b[31mred\x1b[0m \x1b]0;title\x07 \x07bell')"
        "\n"
        r"for i in range(100): print(f'\r{i}%', end='')"
    )
    with mcp:
        assert mcp.value(code) == "red  \\x07bell\n99%"


def test_files_that_it_made_are_links(mcp: Mcp) -> None:
    code = (
        "import os\nos.makedirs('out/.cache')\nopen('out/a b.csv', 'w').write('1,2')\n"
        "open('out/.cache/x', 'w').write('1')"
    )
    with mcp:
        answer = mcp.python(code)
        sandbox = answer.receipt["sandbox"]
        assert answer.links == {file_uri("out/a b.csv", sandbox): "out/a b.csv"}
        assert mcp.resource(file_uri("out/a b.csv", sandbox))["text"] == "1,2"


def test_a_timeout_keeps_what_was_printed_and_the_variables(mcp: Mcp) -> None:
    with mcp:
        answer = mcp.python("y = 5\nprint('so far', flush=True)\nwhile True: pass", timeout_s=1)
        assert answer.is_error and answer.text.startswith("so far\n")
        assert "stopped after 1 s" in answer.text and "timeout_s" in answer.text
        assert answer.receipt["status"] == "timeout"
        assert mcp.value("y") == "5"


def test_reset_takes_variables_and_leaves_files(mcp: Mcp) -> None:
    with mcp:
        mcp.python("z = 1; open('kept', 'w').write('k')")
        answer = mcp.python("print('z' in globals(), open('kept').read())", reset=True)
        assert answer.text == "False k"
        assert "[reset: no variables yet; files are there]" in answer.texts


def test_a_kernel_that_died_is_told(mcp: Mcp) -> None:
    with mcp:
        mcp.python("w = 1")
        died = mcp.python("import os, signal\nprint('x', flush=True)\nos.kill(os.getpid(), 9)")
        assert died.is_error and "variables are gone" in died.text
        after = mcp.python("'w' in globals()")
        assert after.text == "False" and "was restarted" in after.texts


def test_input_reads_the_end_of_the_file_where_nobody_can_be_asked(mcp: Mcp) -> None:
    with mcp:
        answer = mcp.python("input('name? ')")
        assert answer.is_error and ("EOFError" in answer.text or "StdinNotImpl" in answer.text)


def test_receipts_say_what_became_of_it(mcp: Mcp) -> None:
    with mcp:
        receipt = mcp.python("1").receipt
        assert receipt["status"] == "ok" and receipt["profile"]
        assert receipt["execution"].startswith("exec_") or receipt["execution"]
        assert receipt["usage"]["cpu_ms"] >= 0 and receipt["duration_ms"] >= 0


def test_one_call_at_a_time_runs_in_a_sandbox(mcp: Mcp) -> None:
    with mcp:
        mcp.python("n = 0")
        waiting = [
            mcp.begin("run_python", code="import time\nm = n; time.sleep(0.05); n = m + 1")
            for _ in range(6)
        ]
        for connection in waiting:
            with connection:
                assert not mcp.answer(connection).is_error
        assert mcp.value("n") == "6"


@pytest.mark.parametrize("arguments", [{"timeout_s": 0}, {"timeout_s": 1e9}, {"timeout_s": -1}])
def test_a_timeout_outside_of_the_bounds_is_told(mcp: Mcp, arguments: dict[str, float]) -> None:
    with mcp:
        answer = mcp.python("1", **arguments)
        assert answer.is_error and "timeout_s is" in answer.text and "at most" in answer.text


# ---------------------------------------------------------------------------- run_shell


def test_a_command_says_what_it_prints_and_its_exit_code(mcp: Mcp) -> None:
    with mcp:
        answer = mcp.shell("echo out; echo err >&2; echo more; exit 3")
        assert answer.text == "out\nerr\nmore\nexit code 3" and not answer.is_error
        assert mcp.shell("true").text == "exit code 0"
        assert "bash: line 1: nosuch: command not found" in mcp.shell("nosuch").text


def test_a_shell_and_python_share_their_files(mcp: Mcp) -> None:
    with mcp:
        mcp.python("open('a.txt', 'w').write('from python')")
        assert mcp.shell("cat a.txt").text == "from python\nexit code 0"
        assert mcp.shell("mkdir -p d && pwd && ls ..", cwd="/workspace").text.startswith(
            "/workspace"
        )
        assert mcp.shell("pwd", cwd="d").text == "/workspace/d\nexit code 0"


def test_a_command_that_takes_too_long_is_killed(mcp: Mcp) -> None:
    with mcp:
        answer = mcp.shell("echo begun; sleep 1000", timeout_s=1)
        assert answer.is_error and answer.text.startswith("begun\n[killed after 1 s")


def test_a_command_in_the_background_can_be_looked_at_and_ended(mcp: Mcp) -> None:
    with mcp:
        started = mcp.shell(
            "echo hello; cat > /dev/null & echo $! ; wait; sleep 1000", background=True
        )
        found = re.search(r"as (\w+)\.", started.text)
        assert found, started
        name = found.group(1)
        seen = ""
        while "hello" not in seen:
            seen = mcp.call("sandbox", action="output", id=name).text
        assert seen.endswith("[running]")
        assert name in mcp.call("sandbox", action="info").text
        assert "is killed" in mcp.call("sandbox", action="interrupt", id=name).text
        while seen.endswith("[running]"):
            seen = mcp.call("sandbox", action="output", id=name).text
        assert "hello" in mcp.resource(f"cloche://execution/{name}/output")["text"]


def test_long_output_of_a_command_is_cut(mcp: Mcp) -> None:
    with mcp:
        answer = mcp.shell("seq 1 100000; exit 1")
        assert len(answer.texts) <= 30000 and answer.text.startswith("1\n2\n")
        assert answer.text.endswith("100000\nexit code 1")
        assert any("/output" in uri for uri in answer.links)


# ---------------------------------------------------------------------------- ipybox


def test_the_set_of_ipybox_answers_as_upstream(live_service: LiveService) -> None:
    with Mcp(live_service.port, MODERN, "tools=ipybox") as mcp:
        names = {tool["name"] for tool in mcp.ask("tools/list")["tools"]}
        assert {"execute_ipython_cell", "reset"} <= names and "run_python" not in names

        def run(code: str, **more: float) -> str:
            answer = mcp.call("execute_ipython_cell", code=code, **more)
            assert not answer.is_error, answer
            return answer.text

        assert run("a = 1") == ""
        assert run("print('Hello'); a") == "Hello\n1"
        assert run("a", timeout=100000) == "1"
        bad = mcp.call("execute_ipython_cell", code="print('Before error')\nraise ValueError('No')")
        assert bad.is_error
        assert bad.text.startswith("Error executing tool execute_ipython_cell: ValueError: No\n")
        assert "Output before the error:\nBefore error" in bad.text
        assert mcp.call("reset").result["content"] in ([], [{"type": "text", "text": ""}])
        assert "NameError" in mcp.call("execute_ipython_cell", code="a").text
