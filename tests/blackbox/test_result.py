"""The result as JSON, unusual programs and output, and the choice of a profile."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from harness import LONG, Engine, failed, tree


FIELDS: dict[str, Any] = {
    "stdout": str,
    "stderr": str,
    "exit_code": (int, type(None)),
    "timed_out": bool,
    "duration_ms": int,
    "files": list,
    "files_truncated": bool,
    "id": str,
    "status": str,
    "signal": (int, type(None)),
    "stdout_truncated": bool,
    "stderr_truncated": bool,
    "execution_count": (int, type(None)),
    "results": list,
    "text": (str, type(None)),
    "error": (dict, type(None)),
    "kernel_id": (str, type(None)),
    "kernel_restarted": bool,
    "limit_hit": (str, type(None)),
    "denied": list,
    "usage": dict,
    "profile": str,
    "warm": bool,
}


@pytest.mark.parametrize("code", ["print(1)", "1/0", "import os; os.abort()", "while True: pass"])
def test_the_result_has_every_field(engine: Engine, code: str) -> None:
    result = engine.run(code, timeout=0.5)
    assert {name: result.json.get(name, ...) for name in FIELDS if name not in result.json} == {}
    for name, kind in FIELDS.items():
        assert isinstance(result.json[name], kind), (name, result.json[name])
    assert set(result.json) - {"warnings"} == set(FIELDS)  # those only if there are any
    usage = result.usage
    assert set(usage) == {"wall_ms", "queue_ms", "cpu_ms", "memory_peak_bytes", "output_bytes"}
    assert all(isinstance(v, (int, float)) and v >= 0 for v in usage.values())
    assert re.fullmatch(r"exe_[0-9a-f]{32}", result.id)


def test_a_plain_result(engine: Engine) -> None:
    result = engine.run("print('hi')", profile="base")
    assert (result.status, result.exit_code, result.stdout, result.stderr) == ("ok", 0, "hi\n", "")
    assert (result.error, result.limit_hit, result.denied, result.signal) == (None, None, [], None)
    assert (result.profile, result.timed_out, result.files) == ("base", False, [])
    assert result.usage["output_bytes"] == 3
    assert 0 < result.usage["memory_peak_bytes"] < 100 << 20


def test_ids_differ(engine: Engine) -> None:
    assert len({engine.execute("pass").id for _ in range(20)}) == 20


def test_a_refusal_is_told(engine: Engine) -> None:
    code = (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nprint(libc.unshare(0x10000000))"
    )
    result = engine.run(code)
    assert result.stdout == "-1\n"
    assert len(result.denied) == 1
    assert set(result.denied[0]) == {"op", "detail", "rule"}


def test_invalid_utf8_is_still_valid_json(engine: Engine) -> None:
    result = engine.run(
        "import os; os.write(1, b'a\\xffb\\xed\\xa0\\x80\\0c'); os.write(2, b'\\xc3')"
    )
    assert result.stdout.startswith("a\ufffdb") and result.stdout.endswith("\0c")
    assert result.stderr == "\ufffd"


def test_odd_text_is_still_valid_json(engine: Engine) -> None:
    code = "print('\\u2028 \\x85 \\x1b[0m \\x7f \\U0001f331 \\\\ \"')"
    assert engine.run(code).stdout == '\u2028 \x85 \x1b[0m \x7f \U0001f331 \\ "\n'


def test_a_program_larger_than_a_packet(engine: Engine) -> None:
    code = "x = '''" + "y" * 300_000 + "'''\nprint(len(x))"
    outcome = engine.execute(code)
    assert outcome.stdout == b"300000\n"


def test_a_large_program_file(engine: Engine, tmp_path: Path) -> None:
    program = tmp_path / "big.py"
    program.write_text("# " + "x" * (5 << 20) + "\nprint(__file__)")
    assert engine.cli("--timeout", "60", program).stdout == b"/workspace/__main__.py\n"


def test_a_program_that_is_too_large(engine: Engine, tmp_path: Path) -> None:
    program = tmp_path / "big.py"
    program.write_bytes(b"#" * ((16 << 20) + 1))
    failed(engine.cli(program), "at most")


def test_a_program_in_latin_1(engine: Engine, tmp_path: Path) -> None:
    program = tmp_path / "latin.py"
    program.write_bytes("# -*- coding: latin-1 -*-\nprint('é')\n".encode("latin-1"))
    assert engine.cli(program).stdout == "é\n".encode()


def test_a_program_that_is_not_utf8_is_a_syntax_error(engine: Engine, tmp_path: Path) -> None:
    program = tmp_path / "bad.py"
    program.write_bytes(b"print('\xe9')\n")
    done = engine.cli(program)
    assert done.returncode == 1
    assert b"SyntaxError: (unicode error)" in done.stderr or b"Non-UTF-8" in done.stderr


def test_auto_takes_base_for_the_standard_library(engine: Engine) -> None:
    assert engine.run("import json, os").profile == "base"


def test_auto_takes_data_for_numpy(engine: Engine) -> None:
    result = engine.run("import numpy as np; print(np.arange(3).sum())", **LONG)
    assert (result.profile, result.stdout) == ("data", "3\n")


def test_a_module_that_no_profile_has_is_imported(engine: Engine) -> None:
    result = engine.run("import nope_nope")
    assert (result.profile, result.error["name"]) == ("base", "ModuleNotFoundError")


def test_base_can_import_what_data_preloads(engine: Engine) -> None:
    result = engine.run("import numpy; print(numpy.ones(3).sum())", profile="base", **LONG)
    assert (result.profile, result.stdout) == ("base", "3.0\n")


def test_a_data_job(engine: Engine) -> None:
    code = "import pandas as pd\nprint(pd.DataFrame({'a': [1, 2], 'b': [3, 4]}).sum().to_dict())"
    assert engine.run(code, **LONG).stdout == "{'a': 3, 'b': 7}\n"


def test_matplotlib_to_a_file(engine: Engine, tmp_path: Path) -> None:
    code = (
        "import matplotlib.pyplot as plt\n"
        "plt.plot([1, 2, 3]); plt.title('Ünï'); plt.savefig('plot.png'); plt.savefig('plot.svg')\n"
    )
    done = engine.cli(
        "--timeout", "60", "--cpu", "60", "--memory", "512", "--out", tmp_path / "o", "-c", code
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert set(tree(tmp_path / "o")) == {"plot.png", "plot.svg"}
    assert (tmp_path / "o" / "plot.png").read_bytes().startswith(b"\x89PNG")
