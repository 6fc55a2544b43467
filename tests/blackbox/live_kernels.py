"""What the tests of live kernels share."""

from __future__ import annotations

from typing import Any

from live import Box

SLEEP = "import time\nprint('runs', flush=True)\ntime.sleep(1000)"


def dead(result: dict[str, Any], status: str, *words: str) -> None:
    """A result of a cell whose kernel died."""
    assert result["status"] == status, result
    assert result["error"]["name"] == "KernelDied"
    for word in words:
        assert word in result["error"]["value"], result["error"]


def fresh(box: Box) -> None:
    """The next execution has a new kernel, the files of the old one, and says so, once."""
    result = box.run("'x' in globals(), open('/workspace/kept').read()")
    assert result["kernel_restarted"] is True and result["execution_count"] == 1
    assert result["text"] == "(False, 'here')"
    assert box.run("1")["kernel_restarted"] is False


def keep(box: Box) -> None:
    box.run("x = 1\nopen('/workspace/kept', 'w').write('here')")
