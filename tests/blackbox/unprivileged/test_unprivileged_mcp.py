"""`cloche mcp` of an ordinary user, who has no server: it starts one for itself."""

from __future__ import annotations

import signal

import pytest

from harness import Caller, eventually
from host import is_alive
from mcp_stdio import Stdio
from users import home_of


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGKILL])
def test_a_server_of_its_own(caller: Caller, sig: int) -> None:
    with Stdio("--profile", "base", caller=caller) as it:
        it.text("x = 41")
        assert it.text("print(x + 1)") == "42"
        assert "uid=" in it.call("run_shell", command="id").text
        (place,) = home_of(caller).glob("cloche-mcp-*")
        assert place.stat().st_mode & 0o777 == 0o700
        family = it.family()
        assert "cloche-server" in {process.role for process in family}
        it.end(sig)
        assert eventually(lambda: not any(is_alive(process) for process in family))
        assert eventually(lambda: not list(home_of(caller).glob("cloche-mcp-*")))
