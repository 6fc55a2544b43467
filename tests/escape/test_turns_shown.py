"""The longest turn of the loop that something may cause which a kernel or a program shows: see
test_turns.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from http_client import post
from live import Box, Client
from turns import LONGEST_S, Turns


@pytest.fixture
def box(port: int) -> Iterator[Box]:
    with Client(port).box(limits={"disk_mb": 200}) as box:
        yield box


KERNELS: dict[str, str] = {
    "a display of 150,000 MIME types": (
        "from IPython.display import display\n"
        "display({f'x/{i}': '' for i in range(150_000)}, raw=True)"
    ),
    "a display of 4 MB": (
        "from IPython.display import display\n" "display({'text/plain': 'x' * (4 << 20)}, raw=True)"
    ),
    "seven displays of 4 MB": (
        "from IPython.display import display\n"
        "for i in range(7): display({'text/plain': 'y' * 4_000_000}, raw=True)"
    ),
    "a display of 2 MB of escapes": (
        "from IPython.display import display\n"
        "display({'text/plain': '\\n' * (2 << 20)}, raw=True)"
    ),
    "a display of 190,000 values": (
        "from IPython.display import display\n"
        "display({'application/json': [0] * 190_000}, raw=True)"
    ),
    "a result of 2 MB": "'x' * (2 << 20)",
    "2,000 displays": (
        "from IPython.display import display\n"
        "for i in range(2_000): display({'text/plain': 'x'}, raw=True)"
    ),
    "a traceback of 10 MB": "raise ValueError('x' * (10 << 20))",
    "a prompt of 10 MB": "input('x' * (10 << 20))",
    "printing 4 MB": "print('x' * (4 << 20))",
    "comm buffers of 8 MB": (
        "from comm import create_comm\n" "create_comm(target_name='x', buffers=[bytes(8 << 20)])"
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_takes_no_long_turn(box: Box, name: str) -> None:
    turns = Turns(box.port)
    reply = post(box.port, box.path + "/execute", {"code": KERNELS[name], "timeout_ms": 20_000})
    assert reply.status == 200, (reply.status, reply.body[:500])
    assert turns.longest() <= LONGEST_S


# ------------------------------------------------------------------- programs that show something

SHOWN = {name: KERNELS[name] for name in KERNELS if "display" in name or "result" in name}
SHOWN["two results of 15 MB in forms"] = (
    "class A:\n    def _repr_html_(self): return 'x' * (7 << 20)\n"
    "    def __repr__(self): return 'y' * (7 << 20)\ndisplay(A())\nA()"
)


@pytest.mark.parametrize("name", SHOWN)
def test_a_program_that_shows_something_takes_no_long_turn(port: int, name: str) -> None:
    code = SHOWN[name].replace("from IPython.display import display\n", "")
    turns = Turns(port)
    reply = post(port, "/v1/run", {"code": code, "timeout_ms": 20_000})
    assert reply.status == 200 and reply.json["results"], (reply.status, reply.body[:500])
    assert turns.longest() <= LONGEST_S
